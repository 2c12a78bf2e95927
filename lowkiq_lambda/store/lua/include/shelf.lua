--! keys meta damaged
--! needs shard
--! gives LARGEST found notes note_repair set_aside
-- Records that were set aside go into the shard's list `damaged`, which is bounded. Each of them, and each repair, gets a note
-- for the log.
-- An item is {number, time, key, id or field or '', why, bytes, how many there were}, packed.
local MOST_ITEMS, MOST_BYTES, LARGEST, MOST_NOTES = 1000, 32 * 1024 * 1024, 17 * 1024 * 1024, 100
local found, notes = 0, {}

-- A record that follows from the rest of the shard is made anew, and only noted.
local function note_repair(key, id, why, kept)
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
  note_repair(key, id, why, '1')
end
