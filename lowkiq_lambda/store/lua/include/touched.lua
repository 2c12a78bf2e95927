--! needs payloads
--! gives touched_of
-- When an equal payload of the id was pushed last, by its record (records.lua).
local function touched_of(record)
  if is_in_box(record) then return record:sub(2, 7) end
  local _, touched = entries_of(record)
  return touched
end
