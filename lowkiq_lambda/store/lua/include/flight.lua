-- A record in flight: perform_in and retry_count (two doubles), then 's' place payload, or 'm' and for each
-- payload its length (4 bytes) and place payload.
local function flight_record(perform_in, retry_count, entries)
  local head = struct.pack('>dd', perform_in, retry_count)
  if #entries == 1 then return head .. 's' .. entries[1] end
  local parts = {head, 'm'}
  for _, entry in ipairs(entries) do
    parts[#parts + 1] = struct.pack('>I4', #entry)
    parts[#parts + 1] = entry
  end
  return table.concat(parts)
end

local function read_flight(record)
  local perform_in, retry_count = struct.unpack('>dd', record)
  if record:sub(17, 17) == 's' and #record >= 17 + PLACE then return perform_in, retry_count, {record:sub(18)} end
  local entries, at = {}, 18
  while at <= #record do
    local size = struct.unpack('>I4', record, at)
    entries[#entries + 1] = record:sub(at + 4, at + 3 + size)
    at = at + 4 + size
    if size < PLACE or #entries[#entries] < size then error('DAMAGED record in flight') end
  end
  if record:sub(17, 17) ~= 'm' or #entries == 0 then error('DAMAGED record in flight') end
  return perform_in, retry_count, entries
end

-- What an id's troubles are, kept only while it has any: g group of suspects, n strikes, a whose they are
-- (the payload's SHA-1), l most payloads of the next slice, b blamed alone for its last failure, e how often in a row
-- it has exited, x its handler was started as a lone suspect, r its process left while it ran. Strikes, and in h those
-- that halved its slice, are the nonces of holders of which nothing more was heard. c: counts of its payloads
-- (retry_counts.lua).
local function read_trouble(id)
  local packed = call('HGET', trouble, id)
  return packed and cmsgpack.unpack(packed) or {}
end

local function write_trouble(id, t)
  if next(t) then call('HSET', trouble, id, cmsgpack.pack(t)) else call('HDEL', trouble, id) end
end

-- Groups are of use while any suspect is left.
local function drop_suspect(id)
  if call('ZREM', suspects, id) == 1 and not exists(suspects) then call('DEL', groups) end
end

local function suspect(id, t, perform_in, group)
  t.g, t.x = group, nil
  call('ZADD', suspects, perform_in, id)
  -- Last: where something before it fails, all is done again, and a strike must not be noted twice.
  write_trouble(id, t)
end
