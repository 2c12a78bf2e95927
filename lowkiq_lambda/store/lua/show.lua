--! include shard records put page
-- Jobs as people look at them, read only.
-- ARGV[4] 'waiting' or 'morgue', [5], [6] payloads and bytes that are shown of one job, [7], [8] of all,
--   [9..] ids.
-- Returns {how many ids were looked up, job, ...}, a job being {id, perform_in or updated_at,
--   retry_count or false, error or false, how many payloads there are, {entry, ...}}.
local most, bytes, most_in_all, bytes_in_all = unpack(ARGV, 5, 8)
most, bytes, most_in_all, bytes_in_all = tonumber(most), tonumber(bytes), tonumber(most_in_all), tonumber(bytes_in_all)

local function shown(key, id)
  local from, to = box_range(box_prefix(id))
  local entries, size = page(key, id, '', most, bytes)
  most_in_all, bytes_in_all = most_in_all - #entries, bytes_in_all - size
  return call('ZLEXCOUNT', key, from, to), entries
end

local function waiting(id)
  local record = call('HGET', jobs, id)
  if not record then return end
  local count, entries
  if record:sub(1, 1) == 'm' then
    count, entries = shown(box, id)
  else
    local place, payload = read_single(record)
    count, entries = 1, {place .. payload}
    bytes_in_all = bytes_in_all - #record
  end
  return {id, call('ZSCORE', due, id), call('ZSCORE', retry, id), call('HGET', errors, id), count, entries}
end

local function buried(id)
  local updated_at = call('ZSCORE', morgue, id)
  if not updated_at then return end
  local count, entries = shown(morgue_payloads, id)
  return {id, updated_at, false, call('HGET', morgue_errors, id), count, entries}
end

local look_up, reply = ARGV[4] == 'morgue' and buried or waiting, {0}
for i = 9, #ARGV do
  if most_in_all < 1 or bytes_in_all < 1 then break end
  reply[#reply + 1] = look_up(ARGV[i])
  reply[1] = reply[1] + 1
end
return reply
