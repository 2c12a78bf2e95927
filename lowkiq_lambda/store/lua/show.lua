--! include shard records put page flight
-- Jobs as people look at them, read only.
-- ARGV[4] 'waiting', 'flight' or 'morgue', [5], [6] payloads and bytes that are shown of one job, [7] bytes of the
--   largest payload that is shown, [8], [9] payloads and bytes that are shown of all, [10..] ids.
-- Returns {how many ids were looked up, job, ...}, a job being {id, perform_in or updated_at,
--   retry_count or false, error or false, how many payloads there are, {entry, ...}}.
local most, bytes, largest, most_in_all, bytes_in_all = unpack(ARGV, 5, 9)
most, bytes, largest = tonumber(most), tonumber(bytes), tonumber(largest)
most_in_all, bytes_in_all = tonumber(most_in_all), tonumber(bytes_in_all)

-- Of the first payloads those that fit, up to one that is too large.
local function fitting(entries)
  local shown, size = {}, 0
  for i, entry in ipairs(entries) do
    if i > most or #entry - PLACE > largest or (i > 1 and size >= bytes) then break end
    shown[i], size = entry, size + #entry
  end
  most_in_all, bytes_in_all = most_in_all - #shown, bytes_in_all - size
  return shown
end

local function paged(key, id)
  local from, to = box_range(box_prefix(id))
  return call('ZLEXCOUNT', key, from, to), fitting((page(key, id, '', most, bytes)))
end

local function waiting(id)
  local record = call('HGET', jobs, id)
  if not record then return end
  local count, entries
  if record:sub(1, 1) == 'm' then
    count, entries = paged(box, id)
  else
    local place, payload = read_single(record)
    count, entries = 1, fitting({place .. payload})
  end
  local perform_in = call('ZSCORE', since, id) or call('ZSCORE', due, id)
  return {id, perform_in, call('ZSCORE', retry, id), call('HGET', errors, id), count, entries}
end

local function in_flight(id)
  local record = call('HGET', flight, id)
  if not record then return end
  local perform_in, retry_count, entries = read_flight(record)
  local text = string.format
  return {
    id, text('%.17g', perform_in), text('%.17g', retry_count), call('HGET', errors, id), #entries, fitting(entries),
  }
end

local function buried(id)
  local updated_at = call('ZSCORE', morgue, id)
  if not updated_at then return end
  local count, entries = paged(morgue_payloads, id)
  return {id, updated_at, false, call('HGET', morgue_errors, id), count, entries}
end

local look_up, reply = ({waiting = waiting, flight = in_flight, morgue = buried})[ARGV[4]], {0}
for i = 10, #ARGV do
  if most_in_all < 1 or bytes_in_all < 1 then break end
  reply[#reply + 1] = look_up(ARGV[i])
  reply[1] = reply[1] + 1
end
return reply
