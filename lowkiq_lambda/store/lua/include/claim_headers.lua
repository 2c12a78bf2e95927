--! keys headers_even headers_odd
--! needs flown_arrivals in_use
--! gives with_headers
-- The headers of what was claimed.
local HEADERS_AT_ONCE = 1000

-- The reply of a claim, with {id, headers of an entry, ...} after its other parts.
local function with_headers(reply)
  if call('EXISTS', headers_even, headers_odd) == 0 then
    note_use('headers', false)
    return reply
  end
  local arrivals, whose = arrivals_flown(reply[2])
  local listed = {}
  for from = 1, #arrivals, HEADERS_AT_ONCE do
    local to = math.min(#arrivals, from + HEADERS_AT_ONCE - 1)
    local even = call('HMGET', headers_even, unpack(arrivals, from, to))
    local odd = call('HMGET', headers_odd, unpack(arrivals, from, to))
    for i = 1, to - from + 1 do
      local of_entry = even[i] or odd[i]
      if of_entry then listed[#listed + 1], listed[#listed + 2] = whose[from + i - 1], of_entry end
    end
  end
  reply[6], reply[7] = reply[6] or {}, listed
  return reply
end
