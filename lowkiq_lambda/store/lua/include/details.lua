--! keys due box since retry suspects flight morgue meta lease
--! gives suspects_in_flight shard_details
-- Suspects that are in flight: they are listed among those that run next until they are settled.
local function suspects_in_flight()
  local found = {}
  if call('EXISTS', suspects) == 0 then return found end
  for _, id in ipairs(call('HKEYS', flight)) do
    if call('ZSCORE', suspects, id) then found[#found + 1] = id end
  end
  return found
end

-- The shard as its holder has it, for people.
-- {its times as shard_state.lua has them, ids waiting, of them ids that have failed, ids in flight, ids in the morgue,
--   suspects that wait, token, owner, acquired at or '', '1' if its holder gave up, else '', until when a wake counts
--   or '', started jobs that wait, its role in a move: 'closed', 'receiving' or ''}
local function shard_details()
  local token, owner, acquired_at, held_until, abandoned =
    unpack(call('HMGET', meta, 'token', 'owner', 'acquired_at', 'until', 'abandoned'))
  local flight_since, paused_until, woken_until, woken_token, had_started =
    unpack(call('HMGET', meta, 'flight_since', 'paused_until', 'woken_until', 'woken_token', 'had_started'))
  local closed, receiving = unpack(call('HMGET', meta, 'closed', 'receiving'))
  local in_flight = call('HLEN', flight)
  return {
    {
      call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or '',
      call('ZRANGE', since, 0, 0, 'WITHSCORES')[2] or '',
      in_flight > 0 and flight_since or '',
      held_until or '0', math.max(0, call('PTTL', lease)), paused_until or '',
    },
    call('ZCARD', due), call('ZCARD', retry), in_flight, call('ZCARD', morgue),
    call('ZCARD', suspects) - #suspects_in_flight(),
    token or '0', owner or '', acquired_at or '', abandoned or '',
    (woken_token or '') == (token or '') and woken_until or '',
    had_started and call('ZLEXCOUNT', box, '[\128', '+') or 0,
    -- With a 1 it is of an older declaration.
    receiving and 'receiving' or closed and closed ~= '1' and 'closed' or '',
  }
end
