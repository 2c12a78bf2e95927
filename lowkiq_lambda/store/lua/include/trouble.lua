--! keys trouble
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
