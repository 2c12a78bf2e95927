--! keys meta
--! gives uses note_use
-- The features that the shard has begun to use, by name: a caller of a script that concerns one has to pass its keys.
local in_use

local function uses(feature)
  in_use = in_use or call('HGET', meta, 'in_use') or ''
  return in_use:find(feature, 1, true) ~= nil
end

local function note_use(feature, is_used)
  if uses(feature) == is_used then return end
  local names = {}
  for name in in_use:gmatch('%a+') do
    if name ~= feature then names[#names + 1] = name end
  end
  if is_used then names[#names + 1] = feature end
  in_use = table.concat(names, ' ')
  if in_use == '' then call('HDEL', meta, 'in_use') else call('HSET', meta, 'in_use', in_use) end
end
