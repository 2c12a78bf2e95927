--! keys rows
--! gives listed_items
-- Items as the reading scripts return them, by the members of the index that name them.
-- {{status, number (4 bytes), id, label or '', attempts, its course, ref of the item joined or '', {time, ...}, lines left out,
-- params or ''}, ...} and {id, ...} of them; time and course are as include/items.lua has them, but the first time is a text.
local TASK_BYTES = 12

local function listed_items(members)
  local found, ids = {}, {}
  for _, member in ipairs(members) do
    local number = member:sub(TASK_BYTES + 2)
    local packed = call('HGET', rows, member:sub(1, TASK_BYTES) .. number)
    local is_sound, row = pcall(cmsgpack.unpack, packed or '')
    if is_sound and type(row) == 'table' then
      local times = row.t and {string.format('%.17g', row.t[1]), row.t[2] or '', row.t[3] or ''} or {}
      ids[#ids + 1] = row.i or ''
      found[#ids] = {
        member:sub(TASK_BYTES + 1, TASK_BYTES + 1), number, ids[#ids], row.k or '', row.n or 0, row.m or {}, row.w or '', times, row.o or 0,
        row.p or '',
      }
    end
  end
  return found, ids
end
