--! keys meta jobs flight morgue_errors
--! needs shard records newest_place comes_before texts keep_error morgue_bytes morgue
--! with tracking mark_items revive_items
--! with headers join_headers
--! with marks marks
--! gives at_place behind_all not_overtaken take_progress
-- Where dead payloads come that do not come where they were.

-- The payload there, with all that is known of it.
local function at_place(entry, place)
  if has_tracking then move_refs(arrivals_of({entry, place})) end
  if has_headers then join_headers(place, entry:sub(1, PLACE)) end
  return place .. entry:sub(PLACE + 1)
end

-- The score of a push without one, or that of what is newer under the id: behind both.
local function last_score(id)
  local score = math.max(now, tonumber(call('HGET', meta, 'last_score') or now))
  call('HSET', meta, 'last_score', string.format('%.17g', score))
  local packed, newest = struct.pack('>d', score), newest_place(id)
  packed = string.char(packed:byte(1) + 128) .. packed:sub(2)
  return newest and comes_before(packed, newest:sub(1, 8)) and newest:sub(1, 8) or packed
end

local function behind_all(id, entries)
  local score, last = last_score(id), {}
  for i, entry in ipairs(entries) do
    last[i] = at_place(entry, score .. struct.pack('>I6', call('HINCRBY', meta, 'arrival', 1)))
  end
  return last
end

-- Those of the entries that nothing newer stands against; where the merge is "latest" the last of them.
local function not_overtaken(id, entries)
  local newest, kept, mark = newest_place(id), {}, has_marks and marks_of({id})[1]
  for _, entry in ipairs(entries) do
    local is_older = newest and comes_before(entry:sub(1, PLACE), newest)
    if not (is_older or (mark and comes_before(entry:sub(1, 8), mark))) then kept[#kept + 1] = entry end
  end
  return has_marks and {kept[#kept]} or kept
end

-- The progress of a started job, with which the one payload goes on, or nil; it is kept no longer.
local function take_progress(id, entries, kept)
  local text = text_of(morgue_errors, kept)
  local _, bytes = drop_errors(morgue_errors, {PROGRESS .. id})
  count_dead(-bytes)
  local elsewhere = call('HEXISTS', jobs, id) + call('HEXISTS', flight, id) > 0 or #morgue_members(id, 2) > 1
  if elsewhere or #entries ~= 1 or text:sub(1, PLACE) ~= entries[1]:sub(1, PLACE) then return nil end
  return text:sub(PLACE + 1)
end
