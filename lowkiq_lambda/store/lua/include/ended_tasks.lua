--! keys items
--! needs items
--! gives ended_tasks
-- Of the tasks that had items end in this call, those without an item left here that waits or runs, {task, ...}; nil without
-- any. And with 'f' behind it each that had items fail, if it wants to know of that.
local function ended_tasks()
  local ended = {}
  for task in pairs(ended_in) do
    local open = 0
    for _, status in ipairs(#task > TASK and {} or {'e', 'r'}) do
      open = open + call('ZLEXCOUNT', items, '[' .. task .. status, '(' .. task .. string.char(status:byte() + 1))
    end
    if open == 0 then ended[#ended + 1] = task end
  end
  return ended[1] and ended
end
