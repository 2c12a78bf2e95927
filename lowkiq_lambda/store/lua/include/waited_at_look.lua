--! keys jobs box
--! needs action page records payloads flight started
--! gives waited_at_look
-- Whether anything that waits under the id was there when the operator looked; of very many payloads the first count.
local SEEN_OF_ONE = 100

local function waited_at_look(id)
  local record = call('HGET', jobs, id)
  if not record then return false end
  charge(0, #record)
  if record:byte(1) == STARTED then
    for _, entry in ipairs((read_handed(started_of(id), 1))) do
      charge(0, #entry)
      if not newer(entry) then return true end
    end
  end
  if is_in_box(record) then
    for _, entry in ipairs((page(box, id, '', SEEN_OF_ONE, math.max(1, bytes_left)))) do
      if not newer(entry) then return true end
    end
    return false
  end
  local entries, touched = entries_of(record)
  -- An equal payload came since: of several it is unknown to which, and the others were there.
  if #entries == 1 and struct.unpack('>I6', touched) > looked then return false end
  for _, entry in ipairs(entries) do
    if not newer(entry) then return true end
  end
  return false
end
