--! keys flight meta lease pushes_even pushes_odd
--! needs shard mover floors cut_lease exists free_memory_first moved_counters
--! rarely recover
-- Closes a shard that is still and that nobody holds, for good: from then on only carrying changes it. The
-- jobs of a dead holder are recovered first. Harmless to repeat.
-- ARGV[4]     epoch
-- ARGV[5]     ttl
-- ARGV[6]     merge
-- ARGV[7..9]  morgue limits: entries, bytes, age
-- ARGV[10]    error text of what crashed for the last time
-- ARGV[11]    what becomes of an id then, where its rest does not go on
-- Returns {'OK', arrival number, default score, token, the number above which all are that it holds,
--   its kin (prepare.lua), {counter, count, ...}}; {'HELD', seconds}, 0 where the shard is not
--   still; {'OVER'}; or a refusal.
local TOKENS_KEPT = 600
local refused, last = outdated()
if refused then return refused end
if not is_sealed(last) then
  -- Only the server's own clock can show that a lease has ended.
  if not measured then return {'SKEW', now_text} end
  local still_until, receiving, held_until, held_ttl, holder, abandoned =
    unpack(call('HMGET', meta, 'still_until', 'receiving', 'until', 'ttl', 'nonce', 'abandoned'))
  if receiving then return OVER end
  if last ~= epoch or not still_until then return {'HELD', '0'} end
  held_until = tonumber(held_until or 0)
  if held_until ~= held_until then error('DAMAGED until') end
  if now < held_until or exists(lease) then
    return {'HELD', string.format('%.6f', cut_lease(held_until, held_ttl, tonumber(ARGV[5])))}
  end
  free_memory_first()
  if exists(flight) then
    rarely().recover(ARGV[6], 7, ARGV[10], abandoned, holder, ARGV[11])
  end
  above_all()
  local arrival, last_score, token = floors_now()
  call('HDEL', meta, 'still_until', 'abandoned', 'recovery')
  call('HSET', meta, 'closed', table.concat({ARGV[4], arrival, last_score, token}, ' '), 'closed_at', now_text, 'now', latest_now)
  -- A push whose answer was lost is answered as long as it may be sent again.
  call('EXPIRE', pushes_even, TOKENS_KEPT)
  call('EXPIRE', pushes_odd, TOKENS_KEPT)
end
local arrival, last_score, token = floors_now()
return {'OK', arrival, last_score, token, call('HGET', meta, 'above') or '0', kin(), counters_now()}
