--! keys meta
--! needs shard free_memory_first
-- Says that visits to the shard have to ask its queue for a permit, or ends that. Harmless to repeat; a change that was
-- overtaken by a later one takes no mark away.
-- ARGV[4]  number of the change
-- ARGV[5]  '1', or '' to take the mark away
-- Returns {'OK'}, or a refusal.
local refused = refusal()
if refused then return refused end
free_memory_first()
local last = tonumber(call('HGET', meta, 'limited') or 0)
if last > tonumber(ARGV[4]) then return {'OK'} end
if ARGV[5] == '' then
  call('HDEL', meta, 'limited')
else
  call('HSET', meta, 'limited', ARGV[4], 'now', latest_now)
end
return {'OK'}
