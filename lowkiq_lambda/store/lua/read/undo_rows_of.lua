--! keys undo
-- The numbers of the rows by which an action can be undone, newest first; read only.
-- ARGV[4]  id of the action
-- ARGV[5]  where to go on, or '+'
-- Returns {{number, ...}, where to go on, or ''}.
local AT_ONCE = 1000
local numbers, from = {}, ARGV[5]
for _ = 1, 10 do
  local entries = call('XREVRANGE', undo, from, '-', 'COUNT', AT_ONCE)
  for _, entry in ipairs(entries) do
    if entry[2][2] == ARGV[4] then numbers[#numbers + 1] = entry[1] end
  end
  if #entries < AT_ONCE then return {numbers, ''} end
  from = '(' .. entries[#entries][1]
end
return {numbers, from}
