--! keys task_records open_tasks
-- Tasks that are to be looked at, read only.
-- ARGV[4]  how many
-- Returns {how many there are, {id, record, ...}}.
local tasks = {}
for _, id in ipairs(call('ZRANGE', open_tasks, 0, ARGV[4] - 1)) do
  local record = call('HGET', task_records, id)
  if record then tasks[#tasks + 1], tasks[#tasks + 2] = id, record end
end
return {call('ZCARD', open_tasks), tasks}
