--! keys suspects groups
--! needs exists trouble
--! gives drop_suspect suspect
-- Groups are of use while any suspect is left.
local function drop_suspect(id)
  if call('ZREM', suspects, id) == 1 and not exists(suspects) then call('DEL', groups) end
end

local function suspect(id, t, due_at, group)
  t.group, t.at_risk = group, nil
  call('ZADD', suspects, due_at, id)
  -- Last: where something before it fails, all is done again, and a crash must not be counted twice.
  write_trouble(id, t)
end
