--! keys headers_even headers_odd expiries
--! needs flown_arrivals in_use
--! gives with_what_entries_have
-- Headers and expiries of claimed payloads.
local READ_AT_ONCE = 1000

-- `found(i, value, ...)` for the position of each arrival number and its values in these keys.
local function read_each(arrivals, keys, found)
  for from = 1, #arrivals, READ_AT_ONCE do
    local to, values = math.min(#arrivals, from + READ_AT_ONCE - 1), {}
    for i, key in ipairs(keys) do values[i] = call('HMGET', key, unpack(arrivals, from, to)) end
    for i = 1, to - from + 1 do found(from + i - 1, values[1][i] or values[2] and values[2][i]) end
  end
end

local function listed_headers(arrivals, whose)
  local listed = {}
  read_each(arrivals, {headers_even, headers_odd}, function(i, of_entry)
    if of_entry then listed[#listed + 1], listed[#listed + 2] = whose[i], of_entry end
  end)
  return listed
end

local function listed_expiries(arrivals)
  local listed = {}
  read_each(arrivals, {expiries}, function(i, time)
    if time then listed[#listed + 1], listed[#listed + 2] = arrivals[i], time end
  end)
  return listed
end

-- Whether any payload has some; if none has, the shard has come to the end of their use.
local function is_in_use(feature, ...)
  if call('EXISTS', ...) > 0 then return true end
  note_use(feature, false)
  return false
end

-- The reply of a claim, with {id, headers of an entry, ...} after its other parts, and {arrival number, expiry, ...}.
local function with_what_entries_have(reply)
  local of_headers = has_headers and is_in_use('headers', headers_even, headers_odd)
  local of_expiries = has_expiry and is_in_use('expiry', expiries)
  if not (of_headers or of_expiries) then return reply end
  local arrivals, whose = arrivals_flown(reply[2])
  reply[6], reply[7] = reply[6] or {}, of_headers and listed_headers(arrivals, whose) or {}
  if of_expiries then reply[8] = listed_expiries(arrivals) end
  return reply
end
