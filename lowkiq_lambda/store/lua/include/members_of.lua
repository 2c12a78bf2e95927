--! needs put
--! gives members_of
-- Entries of an id as the box and the morgue have them.
local function members_of(id, entries)
  local prefix, members = box_prefix(id), {}
  for i, entry in ipairs(entries) do members[i] = prefix .. entry end
  return members
end
