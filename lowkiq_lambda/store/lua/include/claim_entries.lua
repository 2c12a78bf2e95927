--! keys headers_even headers_odd expiries
--! needs flown_arrivals in_use
--! gives with_what_entries_have
-- Headers and expiries of claimed payloads.
local READ_AT_ONCE = 1000

-- {arrival number, value, ...} of those that have one in these keys.
local function values_at(arrivals, keys)
  local pairs_at = {}
  for from = 1, #arrivals, READ_AT_ONCE do
    local to, values = math.min(#arrivals, from + READ_AT_ONCE - 1), {}
    for i, key in ipairs(keys) do values[i] = call('HMGET', key, unpack(arrivals, from, to)) end
    for i = 1, to - from + 1 do
      local value = values[1][i] or values[2] and values[2][i]
      if value then pairs_at[#pairs_at + 1], pairs_at[#pairs_at + 2] = arrivals[from + i - 1], value end
    end
  end
  return pairs_at
end

-- Whether any payload has some; if none has, the shard has come to the end of their use.
local function is_in_use(feature, ...)
  if call('EXISTS', ...) > 0 then return true end
  note_use(feature, false)
  return false
end

-- The reply of a claim, with {arrival number, headers, ...} and {arrival number, expiry, ...} after its other parts.
local function with_what_entries_have(reply)
  local of_headers = has_headers and is_in_use('headers', headers_even, headers_odd)
  local of_expiries = has_expiry and is_in_use('expiry', expiries)
  if not (of_headers or of_expiries) then return reply end
  local arrivals = arrivals_flown(reply[2])
  reply[6], reply[7] = reply[6] or {}, of_headers and values_at(arrivals, {headers_even, headers_odd}) or {}
  if of_expiries then reply[8] = values_at(arrivals, {expiries}) end
  return reply
end
