--! keys jobs box
--! needs records payloads put started flight
--! gives head_of
-- A blocked head: a payload that has failed for the last time and stays the oldest of its id, which waits until an operator
-- unblocks it. The id is due at FAR (far.lua), and its troubles say so: `blocked_since`, and `head`, the SHA-1 of the payload,
-- by which it is found, as an equal one may have taken its place.
local function head_among(t, entries)
  for i, entry in ipairs(entries) do
    if redis.sha1hex(entry:sub(PLACE + 1)) == t.head then return entry, i end
  end
end

-- The entry of the head, where it waits; nil once it was deleted.
local function head_of(id, t)
  local record = call('HGET', jobs, id)
  if not record then return nil end
  if not is_in_box(record) then return head_among(t, (entries_of(record))) end
  local given = record:byte(1) == STARTED and started_of(id)
  local found = given and head_among(t, (read_handed(given, 1)))
  local LOOKED_AT, prefix = 100, box_prefix(id)
  local from, to = box_range(prefix)
  while not found do
    local members = call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, LOOKED_AT)
    if #members == 0 then return nil end
    for i, member in ipairs(members) do members[i] = member:sub(#prefix + 1) end
    found = head_among(t, members)
    from = '(' .. prefix .. members[#members]
  end
  return found
end
