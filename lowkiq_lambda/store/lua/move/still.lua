--! keys meta
--! needs shard mover floors cut_lease free_memory_first
-- For some seconds no process may take the shard, and its holder comes to an end after its batch; or only reads. Harmless to repeat.
-- ARGV[4]  epoch
-- ARGV[5]  ttl
-- ARGV[6]  seconds; 0 only to read
-- Returns {'OK' or, where the move has closed the shard, 'SEALED', for how many seconds it is held, arrival number,
--   default score, token, the number above which all are that it holds, its kin (prepare.lua), {field of meta that operators have set, value or '', ...}}; {'OVER'}; or a refusal.
local refused, last = outdated()
if refused then return refused end
local closed, receiving, held_until, held_ttl, paused_until, limited, journal_until =
  unpack(call('HMGET', meta, 'closed', 'receiving', 'until', 'ttl', 'paused_until', 'limited', 'journal_until'))
local sealed = closed and last == epoch
if receiving or (closed and not sealed) then return OVER end
held_until = tonumber(held_until or 0)
if held_until ~= held_until then error('DAMAGED until') end
local held = cut_lease(held_until, held_ttl, tonumber(ARGV[5]))
if not held then return {'SKEW', string.format('%.6f', held_until)} end
local seconds = tonumber(ARGV[6])
free_memory_first()
if seconds > 0 and not sealed then
  call('HSET', meta, 'still_until', string.format('%.6f', now + seconds), 'generation', ARGV[4], 'now', latest_now)
end
local arrival, last_score, token = floors_now()
local set = {'paused_until', paused_until or '', 'limited', limited or '', 'journal_until', journal_until or ''}
local above = sealed and call('HGET', meta, 'above') or not sealed and above_all() or '0'
return {sealed and 'SEALED' or 'OK', string.format('%.6f', held), arrival, last_score, token, above, kin(), set}
