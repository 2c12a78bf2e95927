--! keys timetable
--! needs shard timetable
-- Makes an entry at run time, or makes it anew. Harmless to repeat. Other times than before count from now on.
-- ARGV[4]  name
-- ARGV[5]  definition (JSON)
-- ARGV[6]  digest of its times
-- ARGV[7]  id
-- ARGV[8]  'off' or 'on' where the entry comes from another shard, and somebody switched it there, else ''
-- Returns {'OK'}; {'DECLARED'} where code has declared the name within a day; {'FULL'} where the shard has as many entries
--   as it may; or a refusal.
local MOST, DAY = 1000, 86400
local refused = refusal()
if refused then return refused end
local name, definition, digest, id, switch = unpack(ARGV, 4)
local entry = read_entry(name)
if now - seen_at(entry) < DAY then return {'DECLARED'} end
if not entry.definition and call('HLEN', timetable) >= MOST then return {'FULL'} end
if not entry.definition and switch ~= '' then
  entry.switched = true
  if switch == 'off' then entry.off = entry.off or now end
end
if entry.digest ~= digest then entry.since = now end
entry.definition, entry.digest, entry.id = definition, digest, id
write_entry(name, entry)
return {'OK'}
