--! keys errors morgue morgue_payloads morgue_errors meta failures seen expiries
--! needs records payloads put keep_error failures morgue_bytes shard journal
--! with tracking mark_items end_items join_refs
--! with headers join_headers
--! with journalling journalling
--! gives PROGRESS morgue_members forget trim_morgue kill
-- The morgue: payloads that have left the order, with the error that was their last. Its limits are three of ARGV: payloads,
-- bytes, and seconds; payloads that a limit removes are counted as trimmed. Its bytes are those of its payloads with their
-- ids and places, of their errors, and of their ids' failures. Of a dead started job, place and progress of its payload
-- are kept among the errors, behind a byte that no id begins with. Behind that byte, too, `seen` has the place of the equal
-- payload, and `morgue_payloads` has how many payloads an id has, if it has several.
local PROGRESS = '\255'
local SEVERAL_OF, TRIMMED, MEMBERS = '\255', 1000, 100

local function morgue_members(id, most)
  local from, to = box_range(box_prefix(id))
  return call('ZRANGE', morgue_payloads, from, to, 'BYLEX', 'LIMIT', 0, most)
end

-- The id has so many payloads there, and had so many.
local function note_size(id, before, size)
  if before > 1 then call('ZREM', morgue_payloads, SEVERAL_OF .. struct.pack('>I4', before) .. id) end
  if size > 1 then call('ZADD', morgue_payloads, 0, SEVERAL_OF .. struct.pack('>I4', size) .. id) end
end

local function size_of(id) return call('ZLEXCOUNT', morgue_payloads, box_range(box_prefix(id))) end

local function field_of(prefix, payload) return seen_field(SEVERAL_OF .. prefix, payload) end

-- In `seen`, where the id has several.
local function unsee(id, members)
  local prefix, fields, gone = box_prefix(id), {}, {}
  for i, member in ipairs(members) do fields[i] = field_of(prefix, member:sub(#prefix + PLACE + 1)) end
  for i, place in ipairs(call('HMGET', seen, unpack(fields))) do
    if place == members[i]:sub(#prefix + 1, #prefix + PLACE) then gone[#gone + 1] = fields[i] end
  end
  if #gone > 0 then call('HDEL', seen, unpack(gone)) end
end

-- Returns the bytes that this gives back.
local function forget(id, members)
  local removed, bytes = #members > 0 and call('ZREM', morgue_payloads, unpack(members)) or 0, 0
  for _, member in ipairs(members) do bytes = bytes + #member end
  local left = size_of(id)
  if removed > 0 and left + removed > 1 then
    note_size(id, left + removed, left)
    unsee(id, members)
    if left == 1 then unsee(id, morgue_members(id, 1)) end
  end
  if left == 0 then
    local _, of_error = drop_errors(morgue_errors, {id, PROGRESS .. id})
    bytes = bytes + of_error + failures_size(failures_of(id))
    call('ZREM', morgue, id)
    if call('HEXISTS', errors, id) == 0 then call('HDEL', failures, id) end
  end
  count_dead(-bytes)
  return bytes
end

local trimming = {}

function trimming.places_of(id, members)
  local places, size = {}, #box_prefix(id)
  for i, member in ipairs(members) do places[i] = member:sub(size + 1, size + PLACE) end
  return places
end

function trimming.excess_of(most_payloads, most_bytes)
  local several = call('ZLEXCOUNT', morgue_payloads, '[' .. SEVERAL_OF, '+')
  local count, bytes = call('ZCARD', morgue_payloads) - several, call('HGET', meta, 'morgue_bytes')
  return count - most_payloads, tonumber(bytes or 0) - most_bytes
end

-- The id that has the most payloads, and how many it has more than any other; nil if no id has several.
function trimming.largest()
  local ranked = call('ZRANGE', morgue_payloads, '+', '[' .. SEVERAL_OF, 'BYLEX', 'REV', 'LIMIT', 0, 2)
  if #ranked == 0 then return nil end
  local size, next_size = struct.unpack('>I4', ranked[1], 2), ranked[2] and struct.unpack('>I4', ranked[2], 2) or 1
  return ranked[1]:sub(6), math.max(1, size - next_size)
end

-- Payloads that are too old go first, by id. Above the other limits the id with the most payloads loses its oldest ones, so
-- that no id takes the place of others. If each id has one payload, the one that has been here longest goes.
function trimming.next_to_trim(longest, is_above)
  local oldest = call('ZRANGE', morgue, 0, 0, 'WITHSCORES')
  if #oldest == 0 then return nil end
  if tonumber(oldest[2]) < now - longest then return oldest[1], MEMBERS, true end
  if not is_above then return nil end
  local id, most = trimming.largest()
  return id or oldest[1], math.min(MEMBERS, most or 1), false
end

-- No more goes than the limits ask for. A call that found a limit passed by much may leave some of it to the next,
-- but never removes less than it has killed. `at`: where ARGV has the limits. Returns how many went.
local function trim_morgue(at, dead)
  local most_payloads, most_bytes, longest = unpack(ARGV, at, at + 2)
  local count, bytes = trimming.excess_of(most_payloads, most_bytes)
  local growth, trimmed, freed = morgue_growth, 0, 0
  while trimmed < math.max(TRIMMED, dead) or freed < growth do
    local id, most, expired = trimming.next_to_trim(tonumber(longest), count > 0 or bytes > 0)
    if not id then break end
    local members, size = {}, 0
    for _, member in ipairs(morgue_members(id, most)) do
      if not expired and count <= #members and bytes <= size then break end
      members[#members + 1], size = member, size + #member
    end
    local places = trimming.places_of(id, members)
    if has_tracking then drop_refs(arrivals_of(places)) end
    for _, place in ipairs(places) do enter('trimmed', {id, place}) end
    local given_back = forget(id, members)
    count, bytes = count - #members, bytes - given_back
    trimmed, freed = trimmed + #members, freed + given_back
  end
  if trimmed > 0 then call('HINCRBY', meta, 'trimmed', trimmed) end
  return trimmed
end

-- Where an equal payload lies, or nil. One that is the only one of its id is in `seen` from now on, if another comes.
local function place_of_equal(prefix, size, payload)
  local field = field_of(prefix, payload)
  if size > 1 then
    local known = call('HGET', seen, field)
    return known and call('ZSCORE', morgue_payloads, prefix .. known .. payload) and known or nil, field
  end
  local from, to = box_range(prefix)
  local member = call('ZRANGE', morgue_payloads, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
  local place, other = member:sub(#prefix + 1, #prefix + PLACE), member:sub(#prefix + PLACE + 1)
  if other == payload then return place, field end
  call('HSET', seen, field_of(prefix, other), place)
  return nil, field
end

-- Returns the bytes that it takes up there.
local function lay(merge, id, place, payload)
  local prefix, size, known, field = box_prefix(id), size_of(id), nil, nil
  if size > 0 and merge ~= 'never' then known, field = place_of_equal(prefix, size, payload) end
  if not known then
    if call('ZADD', morgue_payloads, 0, prefix .. place .. payload) == 0 then return 0 end
    if field then call('HSET', seen, field, place) end
    note_size(id, size, size + 1)
    return #prefix + PLACE + #payload
  end
  if known == place then return 0 end
  local kept, gone = payloads.preferred(merge == 'latest' and 'max' or merge, place, known)
  if kept == place then
    call('ZREM', morgue_payloads, prefix .. known .. payload)
    call('ZADD', morgue_payloads, 0, prefix .. place .. payload)
    if size > 1 then call('HSET', seen, field, place) end
  end
  if has_tracking then join_refs(kept, gone) end
  if has_headers then join_headers(kept, gone) end
  if has_journalling then trace('joined', {id, kept, gone}) end
  return 0
end

-- An equal payload of the id that lies there is united with it, as among what waits. `progress`: of a started job that
-- was handed this payload and no other. `word`: that of the journal, 'dead' or 'killed'; `at`: when it died.
local function kill(merge, id, place, payload, error, progress, word, at)
  if word then enter(word, {id, place}) end
  -- An operator who puts it back wants it done, whenever that is.
  if has_expiry then call('HDEL', expiries, place:sub(9)) end
  local bytes = lay(merge, id, place, payload)
  if call('ZADD', morgue, at or now, id) == 1 then bytes = bytes + failures_size(failures_of(id)) end
  count_dead(bytes + keep_error(morgue_errors, id, error))
  if progress then count_dead(keep_error(morgue_errors, PROGRESS .. id, place .. progress)) end
end
