--! keys task_records open_tasks task_expiry
-- Names the open tasks whose last look is longest ago, behind them complete ones that may succeed yet, and notes this look;
-- and the tasks that are to be forgotten.
-- A repeat, as any look that is lost, costs these tasks a turn.
-- ARGV[4]  how many of each at most
-- ARGV[5]  the least score of complete ones
-- Returns {{id, record, ...} to be looked at, {id, record, ...} of those that are to be forgotten}.
local now_text, most, complete = ARGV[2], tonumber(ARGV[4]), ARGV[5]

local function with_records(ids)
  local found = {}
  if #ids == 0 then return found end
  for i, record in ipairs(call('HMGET', task_records, unpack(ids))) do
    if record then found[#found + 1], found[#found + 2] = ids[i], record end
  end
  return found
end

local ids = call('ZRANGE', open_tasks, '-inf', '(' .. complete, 'BYSCORE', 'LIMIT', 0, most)
local completed = call('ZRANGE', open_tasks, complete, '+inf', 'BYSCORE', 'LIMIT', 0, most)
local looked_at = string.format('%.3f', complete + now_text)
-- Redis lets a script write when memory is full only after a command that frees: this is the first.
call('HDEL', task_records, '')
for _, id in ipairs(ids) do call('ZADD', open_tasks, 'XX', now_text, id) end
for _, id in ipairs(completed) do
  call('ZADD', open_tasks, 'XX', looked_at, id)
  ids[#ids + 1] = id
end
local over = call('ZRANGE', task_expiry, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, most)
return {with_records(ids), with_records(over)}
