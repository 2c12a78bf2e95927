--! keys items
--! needs items mark_items
--! gives ended_tasks
-- Of the tasks that had items end in this call, those without an item left here that waits or runs, {task, ...}; nil without
-- any. And with 'f' behind it each that had items fail, if it wants to know of that.
local function ended_tasks()
  local ended = {}
  for task in pairs(ended_in) do
    local waiting = call('ZLEXCOUNT', items, '[' .. task .. 'e', '(' .. task .. 'f')
    local running = call('ZLEXCOUNT', items, '[' .. task .. 'r', '(' .. task .. 's')
    if waiting + running == 0 then ended[#ended + 1] = task end
  end
  for task in pairs(failed_in) do ended[#ended + 1] = task .. 'f' end
  return ended[1] and ended
end
