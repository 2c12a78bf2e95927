--! include shard
-- The shard as its holder has it, read only.
-- Returns {ids waiting, of them ids that have failed, ids in flight, ids in the morgue, suspects, earliest due or '',
--   earliest since or '', flight since or '', token, owner, acquired at or '', lease until, milliseconds left on the
--   lease key, '1' if its holder gave up, else '', paused until or '', a called drain counts until or ''}.
local flight_since, token, owner, acquired_at, held_until, abandoned, paused_until, woken_until, woken_token =
  unpack(call('HMGET', meta, 'flight_since', 'token', 'owner', 'acquired_at', 'until', 'abandoned', 'paused_until',
    'woken_until', 'woken_token'))
local in_flight = call('HLEN', flight)
local woken = woken_until and (woken_token or '0') == (token or '0')
return {
  call('ZCARD', due), call('ZCARD', retry), in_flight, call('ZCARD', morgue), call('ZCARD', suspects),
  call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or '',
  call('ZRANGE', since, 0, 0, 'WITHSCORES')[2] or '',
  in_flight > 0 and flight_since or '',
  token or '0', owner or '', acquired_at or '', held_until or '0', math.max(0, call('PTTL', lease)),
  abandoned or '', paused_until or '', woken and woken_until or '',
}
