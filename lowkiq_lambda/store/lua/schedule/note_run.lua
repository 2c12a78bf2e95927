--! needs shard timetable free_memory_first
-- Notes in an entry's history that a person had it run now. Its planned times stay as they are.
-- ARGV[4]  name
-- ARGV[5]  what is noted
-- Returns {'OK'}; {'NONE'} if the shard has no such entry; or a refusal.
local refused = refusal()
if refused then return refused end
local entry = read_entry(ARGV[4])
if not next(entry) then return {'NONE'} end
free_memory_first()
note(entry, now, ARGV[5])
write_entry(ARGV[4], entry)
return {'OK'}
