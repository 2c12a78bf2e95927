--! keys items
--! needs mark_items
--! gives ended_tasks
-- Of the tasks that had items end in this call, those without an item left here that waits or runs, {task, ...}; nil without
-- any.
local function ended_tasks()
  local ended = {}
  for task in pairs(ended_in) do
    local waiting = call('ZLEXCOUNT', items, '[' .. task .. 'e', '(' .. task .. 'f')
    local running = call('ZLEXCOUNT', items, '[' .. task .. 'r', '(' .. task .. 's')
    if waiting + running == 0 then ended[#ended + 1] = task end
  end
  return ended[1] and ended
end
