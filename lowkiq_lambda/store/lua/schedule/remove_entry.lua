--! keys timetable
--! needs shard timetable free_memory_first
-- Removes an entry that was made at run time. Harmless to repeat. Where code declares the name too, that counts from now on.
-- ARGV[4]  name
-- Returns {'OK'}; {'NONE'} if there is no such entry; or a refusal.
local refused = refusal()
if refused then return refused end
local name = ARGV[4]
local entry = read_entry(name)
if not entry.definition then return {'NONE'} end
free_memory_first()
if entry.known then
  entry.definition, entry.digest, entry.since, entry.on = nil, nil, nil, now
  write_entry(name, entry)
else
  call('HDEL', timetable, name)
end
return {'OK'}
