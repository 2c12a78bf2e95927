--! keys errors morgue morgue_payloads morgue_errors meta failures
--! needs records put keep_error failures morgue_bytes shard journal
--! with tracking mark_items end_items
-- The morgue: payloads that have left the order, with the error that was their last, bounded by
-- LIMITS = {entries, bytes, age in seconds}; what a limit removes is counted as trimmed. Its bytes are those of its
-- payloads with their ids and places, of their errors, and of their ids' failures. Where a started job was buried, place
-- and progress of its payload are kept among the errors, behind what is no id.
local PROGRESS = '\255'

local function morgue_members(id, most)
  local from, to = box_range(box_prefix(id))
  return call('ZRANGE', morgue_payloads, from, to, 'BYLEX', 'LIMIT', 0, most)
end

-- Returns the bytes that this gives back.
local function forget(id, members)
  if #members > 0 then call('ZREM', morgue_payloads, unpack(members)) end
  local bytes = 0
  for _, member in ipairs(members) do bytes = bytes + #member end
  if #morgue_members(id, 1) == 0 then
    local _, of_error = drop_errors(morgue_errors, {id, PROGRESS .. id})
    bytes = bytes + of_error + failures_size(failures_of(id))
    call('ZREM', morgue, id)
    if call('HEXISTS', errors, id) == 0 then call('HDEL', failures, id) end
  end
  count_buried(-bytes)
  return bytes
end

local trim_morgue
do
  local TRIMMED, MEMBERS = 1000, 100

  local function places_of(id, members)
    local places, size = {}, #box_prefix(id)
    for i, member in ipairs(members) do places[i] = member:sub(size + 1, size + PLACE) end
    return places
  end

  local function excess_of(limits)
    local count, bytes = call('ZCARD', morgue_payloads), call('HGET', meta, 'morgue_bytes')
    return count - limits[1], tonumber(bytes or 0) - limits[2]
  end

  -- The id that was longest left alone goes first: its payloads in their order, no more than the limits ask for. A call
  -- that found a limit passed by much may leave some of it to the next, but never removes less than it has buried.
  function trim_morgue(limits, buried)
    local count, bytes = excess_of(limits)
    local growth, trimmed, freed = morgue_growth, 0, 0
    while trimmed < math.max(TRIMMED, buried) or freed < growth do
      local oldest = call('ZRANGE', morgue, 0, 0, 'WITHSCORES')
      if #oldest == 0 then break end
      local expired = tonumber(oldest[2]) < now - limits[3]
      if not (expired or count > 0 or bytes > 0) then break end
      local members, size = {}, 0
      for _, member in ipairs(morgue_members(oldest[1], MEMBERS)) do
        if not expired and count <= #members and bytes <= size then break end
        members[#members + 1], size = member, size + #member
      end
      local places = places_of(oldest[1], members)
      if has_tracking then drop_refs(arrivals_of(places)) end
      for _, place in ipairs(places) do enter('trimmed', {oldest[1], place}) end
      local given_back = forget(oldest[1], members)
      count, bytes = count - #members, bytes - given_back
      trimmed, freed = trimmed + #members, freed + given_back
    end
    if trimmed > 0 then call('HINCRBY', meta, 'trimmed', trimmed) end
  end
end

-- `progress`: of a started job that was handed this payload and no other.
local function bury(id, place, payload, error, progress)
  local member = box_prefix(id) .. place .. payload
  local bytes = call('ZADD', morgue_payloads, 0, member) == 1 and #member or 0
  if call('ZADD', morgue, now, id) == 1 then bytes = bytes + failures_size(failures_of(id)) end
  count_buried(bytes + keep_error(morgue_errors, id, error))
  if progress then count_buried(keep_error(morgue_errors, PROGRESS .. id, place .. progress)) end
end
