--! keys due since retry flight morgue meta
-- The shard in numbers, read only.
-- Returns {ids waiting, of them ids that have failed, ids in flight, ids in the morgue, earliest due or '',
--   earliest since or '', flight since or '', and the counters processed, retried, dead, payloads}.
local due, since, retry, flight, morgue, meta = unpack(KEYS)
local call = redis.call
local flight_since, processed, retried, dead, payloads =
  unpack(call('HMGET', meta, 'flight_since', 'processed', 'retried', 'dead', 'payloads'))
local in_flight = call('HLEN', flight)
return {
  call('ZCARD', due),
  call('ZCARD', retry),
  in_flight,
  call('ZCARD', morgue),
  call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or '',
  call('ZRANGE', since, 0, 0, 'WITHSCORES')[2] or '',
  in_flight > 0 and flight_since or '',
  processed or '0',
  retried or '0',
  dead or '0',
  payloads or '0',
}
