--! keys undo_notes
-- The actions of the last ten minutes that can be undone; read only.
-- Returns {id of the action, its name, when it began, how many ids can be undone, of how many, ...}.
local listed = {}
local stored = call('HGETALL', undo_notes)
for i = 1, #stored, 2 do
  if #stored[i] == 17 then
    local act, at, ids, of = unpack(cmsgpack.unpack(stored[i + 1]))
    for _, part in ipairs({stored[i]:sub(2), act, string.format('%.6f', at), ids, of}) do listed[#listed + 1] = part end
  end
end
return {listed}
