--! keys rows items
--! needs shard in_use free_memory_first
-- Forgets items of a task in the shard, some of them. Harmless to repeat. Refs of theirs that are left mean nothing any more.
-- ARGV[4]  task, 12 bytes
-- ARGV[5]  how many at most
-- Returns {'OK', how many were forgotten}, or a refusal.
local refused = refusal()
if refused then return refused end
local task, most = ARGV[4], tonumber(ARGV[5])
local members = call('ZRANGE', items, '[' .. task, '[' .. task .. string.rep('\255', 6), 'BYLEX', 'LIMIT', 0, most)
free_memory_first()
if #members > 0 then
  local gone = {}
  for i, member in ipairs(members) do gone[i] = task .. member:sub(#task + 2) end
  call('HDEL', rows, unpack(gone))
  call('ZREM', items, unpack(members))
end
if #members < most then call('HDEL', rows, 'v' .. task) end
if call('EXISTS', rows) == 0 then note_use('tasks', false) end
return {'OK', #members}
