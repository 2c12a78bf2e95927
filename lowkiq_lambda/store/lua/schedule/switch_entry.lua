--! needs shard timetable free_memory_first
-- Switches an entry on or off. Harmless to repeat. Nothing fires for the time in which it was off.
-- ARGV[4]  name
-- ARGV[5]  '1' to switch it on, else ''
-- ARGV[6]  '1' where the caller's code declares it, else '': then there may be no record of it yet
-- ARGV[7]  '1' where its declaration has it off until somebody switches it on, else ''
-- Returns {'OK'}; {'SAME'} where it was so before; {'NONE'} if there is no such entry; or a refusal.
local refused = refusal()
if refused then return refused end
local name, is_on = ARGV[4], ARGV[5] == '1'
local entry = read_entry(name)
if not next(entry) and ARGV[6] ~= '1' then return {'NONE'} end
local decides = ARGV[7] == '1' and not entry.switched
if (not entry.off) == is_on and not (decides and is_on) then return {'SAME'} end
free_memory_first()
if is_on then entry.off, entry.on = nil, now else entry.off = now end
entry.switched = true
write_entry(name, entry)
return {'OK'}
