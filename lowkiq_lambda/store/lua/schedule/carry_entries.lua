--! keys meta timetable
--! needs shard
-- Gives a shard of a new declaration the records of entries that the old shards had; what it had itself is of an older
-- declaration, and goes. Harmless to repeat.
-- ARGV[4]    generation of the declaration
-- ARGV[5..]  name and packed record of each entry
-- Returns {'OK'}; {'STALE'} where a later generation has given the shard an order; or a refusal.
local refused = refusal()
if refused and refused[1] ~= 'CLOSED' then return refused end
local last = call('HGET', meta, 'generation')
if last and not (tonumber(last) < 2 ^ 53) then error('DAMAGED generation') end
if last and tonumber(last) > tonumber(ARGV[4]) then return {'STALE'} end
call('UNLINK', timetable)
if #ARGV > 4 then call('HSET', timetable, unpack(ARGV, 5)) end
return {'OK'}
