--! keys due since retry flight morgue meta
-- Shards in numbers, read only. KEYS: those of one shard after the other.
-- Returns {JSON}, as a table of numbers costs much more, here and where it is read: a list with, for each shard, ids
--   waiting, of them ids that have failed, ids in flight, ids in the morgue, the counters processed, retried, dead,
--   payloads, then, null where there is none, earliest due, earliest since, flight since, and last paused until or 0.
local call = redis.call
local OF_A_SHARD = 6
local shards = {}
for at = 1, #KEYS, OF_A_SHARD do
  local due, since, retry, flight, morgue, meta = unpack(KEYS, at, at + OF_A_SHARD - 1)
  local processed, retried, dead, payloads, flight_since, paused_until =
    unpack(call('HMGET', meta, 'processed', 'retried', 'dead', 'payloads', 'flight_since', 'paused_until'))
  local retries, in_flight, buried, earliest_since = 0, 0, 0, nil
  -- Most shards have none of these, and a command costs more than what it reads.
  if call('EXISTS', since, retry, flight, morgue) > 0 then
    retries, in_flight, buried = call('ZCARD', retry), call('HLEN', flight), call('ZCARD', morgue)
    earliest_since = call('ZRANGE', since, 0, 0, 'WITHSCORES')[2]
  end
  shards[#shards + 1] = string.format('[%d,%d,%d,%d,%s,%s,%s,%s,%s,%s,%s,%s]',
    call('ZCARD', due), retries, in_flight, buried, processed or 0, retried or 0, dead or 0, payloads or 0,
    call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or 'null', earliest_since or 'null',
    in_flight > 0 and flight_since or 'null', paused_until or 0
  )
end
return {'[' .. table.concat(shards, ',') .. ']'}
