--! each rows items
-- How many items of a task shards have, by status, read only. Of one shard after the other.
-- ARGV[4]  task, 12 bytes
-- ARGV[5]  statuses, a letter each
-- Returns for each {{count of each status, ...}, how often an ended item has been opened again}.
local task, statuses, counts = ARGV[4], ARGV[5], {}
for _ in shards do
  local own = {}
  for status in statuses:gmatch('.') do
    own[#own + 1] = call('ZLEXCOUNT', items, '[' .. task .. status, '(' .. task .. string.char(status:byte() + 1))
  end
  counts[#counts + 1] = {own, tonumber(call('HGET', rows, 'v' .. task) or 0)}
end
return counts
