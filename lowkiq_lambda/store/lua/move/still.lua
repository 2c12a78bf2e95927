--! keys meta
--! needs shard mover floors held free_memory_first
-- Lets nobody take the shard for some seconds, and its holder come to an end after its batch; or only tells. Harmless to repeat.
-- ARGV[4]  epoch
-- ARGV[5]  seconds; 0 only to tell
-- Returns {'OK' or, where the move has closed the shard, 'SEALED', for how many seconds it is held, arrival number,
--   default score, token, {field of meta that operators have set, value or '', ...}}; {'OVER'}; or a refusal.
local refused, last = outdated()
if refused then return refused end
local closed, receiving, held_until, paused_until, limited, journal_until =
  unpack(call('HMGET', meta, 'closed', 'receiving', 'until', 'paused_until', 'limited', 'journal_until'))
local sealed = closed and last == epoch
if receiving or (closed and not sealed) then return OVER end
local seconds = tonumber(ARGV[5])
if seconds > 0 and not sealed then
  free_memory_first()
  call('HSET', meta, 'still_until', string.format('%.6f', now + seconds), 'generation', ARGV[4], 'now', latest_now)
end
local arrival, last_score, token = floors_now()
local held = string.format('%.6f', held_for(tonumber(held_until or 0)))
local set = {'paused_until', paused_until or '', 'limited', limited or '', 'journal_until', journal_until or ''}
return {sealed and 'SEALED' or 'OK', held, arrival, last_score, token, set}
