--! keys due since retry flight morgue meta
-- The shard in numbers, read only.
-- Returns {JSON}, as a table of numbers costs much more, here and where it is read: ids waiting, of them ids that have
--   failed, ids in flight, ids in the morgue, the counters processed, retried, dead, payloads, and then, null where
--   there is none, earliest due, earliest since, flight since.
local due, since, retry, flight, morgue, meta = unpack(KEYS)
local call = redis.call
local processed, retried, dead, payloads, flight_since =
  unpack(call('HMGET', meta, 'processed', 'retried', 'dead', 'payloads', 'flight_since'))
local retries, in_flight, buried, earliest_since = 0, 0, 0, nil
-- Most shards have none of these, and a command costs more than what it reads.
if call('EXISTS', since, retry, flight, morgue) > 0 then
  retries, in_flight, buried = call('ZCARD', retry), call('HLEN', flight), call('ZCARD', morgue)
  earliest_since = call('ZRANGE', since, 0, 0, 'WITHSCORES')[2]
end
return {'[' .. table.concat({
  call('ZCARD', due), retries, in_flight, buried, processed or 0, retried or 0, dead or 0, payloads or 0,
  call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or 'null', earliest_since or 'null',
  in_flight > 0 and flight_since or 'null',
}, ',') .. ']'}
