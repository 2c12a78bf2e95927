--! keys meta
--! needs mover free_memory_first journal moved_counters
-- Opens a shard that has received all that a move brings it; what is counted comes with it, once. Harmless to repeat.
-- ARGV[4]  epoch
-- ARGV[5]  msgpack of {counter, count, ...}
-- ARGV[6]  msgpack of {{from = a shard, base = what was added to the arrival numbers of what came from there}, ...}
-- Returns {'OK'}; {'OVER'}; or a refusal.
local refused, last = outdated()
if refused then return refused end
if last ~= epoch or is_sealed(last) then return OVER end
free_memory_first()
if call('HDEL', meta, 'receiving') == 0 then return {'OK'} end
add_counters(cmsgpack.unpack(ARGV[5]))
for _, each in ipairs(cmsgpack.unpack(ARGV[6])) do enter('moved', each) end
write_journal(ARGV[4])
return {'OK'}
