--! keys jobs box flight morgue_payloads
--! needs put records payloads started flight flown_arrivals
-- Where the payloads of ids lie.
-- ARGV[4..]  ids
-- Returns for each id {arrival numbers of what waits}, {of what is in flight}, {of what lies in the morgue}.
local function number_of(arrival) return (struct.unpack('>I6', arrival)) end

local function in_range(key, prefix)
  local numbers, from, to = {}, box_range(prefix)
  for i, member in ipairs(call('ZRANGE', key, from, to, 'BYLEX')) do
    numbers[i] = number_of(payloads.arrival_of(member:sub(#prefix + 1, #prefix + PLACE)))
  end
  return numbers
end

local function waiting(id)
  local record = call('HGET', jobs, id)
  if not record then return {} end
  if not is_in_box(record) then
    local numbers = {}
    for i, entry in ipairs((entries_of(record))) do numbers[i] = number_of(payloads.arrival_of(entry)) end
    return numbers
  end
  local numbers, given = in_range(box, box_prefix(id)), record:byte(1) == STARTED and started_of(id)
  for _, entry in ipairs(given and read_handed(given, 1) or {}) do numbers[#numbers + 1] = number_of(payloads.arrival_of(entry)) end
  return numbers
end

local function flown(id)
  local record, numbers = call('HGET', flight, id), {}
  for i, arrival in ipairs(record and arrivals_in(record) or {}) do numbers[i] = number_of(arrival) end
  return numbers
end

local reply = {}
for i = 4, #ARGV do
  local id = ARGV[i]
  for _, numbers in ipairs({waiting(id), flown(id), in_range(morgue_payloads, box_prefix(id))}) do
    reply[#reply + 1] = numbers
  end
end
return reply
