--! keys box
--! needs records payloads started flight
--! gives oldest_entry
-- The oldest entry that waits under an id with this record in jobs; nil if the record is damaged.
local function oldest_entry(id, record)
  if not is_in_box(record) then return entries_of(record)[1] end
  local given = record:byte(1) == STARTED and started_of(id)
  if given then return read_handed(given, 1)[1] end
  local prefix = struct.pack('>I4', #id) .. id
  local member = call('ZRANGE', box, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
  return member and member:sub(#prefix + 1)
end
