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
  if record:sub(17, 17) == 's' then return perform_in, retry_count, {record:sub(18)} end
  local entries, at = {}, 18
  while at <= #record do
    local size = struct.unpack('>I4', record, at)
    entries[#entries + 1] = record:sub(at + 4, at + 3 + size)
    at = at + 4 + size
  end
  return perform_in, retry_count, entries
end

-- What an id's troubles are, kept only while it has any: g group of suspects, n strikes, l most payloads of
-- the next slice, b blamed alone for its last failure, e how often in a row its handler ended the holder, x its
-- handler was started as a lone suspect, r its process left while it ran.
local function read_trouble(id)
  local packed = call('HGET', trouble, id)
  return packed and cmsgpack.unpack(packed) or {}
end

local function write_trouble(id, t)
  if next(t) then call('HSET', trouble, id, cmsgpack.pack(t)) else call('HDEL', trouble, id) end
end

-- Puts delivered payloads back among what waits, due at a time and with a count that the caller decides.
local function put_back(merge, id, entries, perform_in, retry_count)
  for _, entry in ipairs(entries) do put(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
  call('ZADD', due, perform_in, id)
  call('ZREM', since, id)
  if retry_count >= 0 then call('ZADD', retry, retry_count, id) else call('ZREM', retry, id) end
end

-- As it was before the claim: the same time, the same count.
local function give_back(merge, id, record)
  local perform_in, retry_count, entries = read_flight(record)
  put_back(merge, id, entries, perform_in, retry_count)
  return perform_in, entries
end

-- Groups are of use while any suspect is left.
local function drop_suspect(id)
  if call('ZREM', suspects, id) == 1 and not exists(suspects) then call('DEL', groups) end
end

local function suspect(id, perform_in, group)
  local t = read_trouble(id)
  t.g, t.x = group, nil
  write_trouble(id, t)
  call('ZADD', suspects, perform_in, id)
end
