--! keys meta damaged
--! needs shard
--! gives LARGEST found notes put_right set_aside
-- What was set aside, and what was put right, in the shard's list `damaged`, bounded; a note of each for the log.
-- An item is {number, time, key, id or field or '', why, bytes, how many there were}, packed.
local MOST_ITEMS, MOST_BYTES, LARGEST, MOST_NOTES = 1000, 32 * 1024 * 1024, 17 * 1024 * 1024, 100
local found, notes = 0, {}

-- What can be derived from the rest of the shard is only told.
local function put_right(key, id, why, kept)
  found = found + 1
  if #notes < 4 * MOST_NOTES then
    for _, part in ipairs({key, id:sub(1, 200), why, kept or ''}) do notes[#notes + 1] = part end
  end
end

local function set_aside(key, id, bytes, why)
  local number = call('HINCRBY', meta, 'damaged', 1)
  local item = cmsgpack.pack({number, now, key, id, why, bytes:sub(1, LARGEST), #bytes})
  local items, size = call('RPUSH', damaged, item), call('HINCRBY', meta, 'damaged_bytes', #item)
  while items > MOST_ITEMS or size > MOST_BYTES and items > 1 do
    size = call('HINCRBY', meta, 'damaged_bytes', -#call('LPOP', damaged))
    items = items - 1
  end
  put_right(key, id, why, '1')
end
