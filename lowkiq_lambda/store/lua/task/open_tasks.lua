--! keys task_records open_tasks
-- Tasks that are not complete, read only.
-- ARGV[4]  how many
-- ARGV[5]  the least score of complete ones
-- Returns {how many there are, {id, record, ...}}.
local tasks, before = {}, '(' .. ARGV[5]
for _, id in ipairs(call('ZRANGE', open_tasks, '-inf', before, 'BYSCORE', 'LIMIT', 0, ARGV[4])) do
  local record = call('HGET', task_records, id)
  if record then tasks[#tasks + 1], tasks[#tasks + 2] = id, record end
end
return {call('ZCOUNT', open_tasks, '-inf', before), tasks}
