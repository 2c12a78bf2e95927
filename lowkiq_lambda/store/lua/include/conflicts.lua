--! keys jobs box due retry flight expiries
--! needs wait records payloads put started trouble retry_counts supersede journal shard
--! gives conflicts
-- Pushes that are stored only if their id has no work. Of a packed job: a byte of flags, as store/shard/pushing.py sets them.
-- An id whose waiting payloads are all over has none, nor has one whose payloads follow a dead head to the morgue.
local UNLESS_WAITING, UNLESS_RUNNING, REPLACE, MOST_REPLACED, MOST_LOOKED_AT = 1, 2, 4, 1000, 100
local conflicts, running, stored, replacing, replaced, is_dear = {}, nil, {}, {}, 0, false

-- Why such a push is not stored, a letter: the id waits, runs, waits with a cursor, or has more than can be replaced.
local WAITS, RUNS, HAS_CURSOR, TOO_MANY = 'w', 'r', 's', 'm'

local function count_waiting(id, record)
  if is_in_box(record) then return call('ZLEXCOUNT', box, box_range(box_prefix(id))) end
  local _, count = payloads.layout(record)
  return count
end

local function waiting_entries(id, record)
  if not is_in_box(record) then return (entries_of(record)) end
  local prefix = box_prefix(id)
  local from, to = box_range(prefix)
  local members = call('ZRANGE', box, from, to, 'BYLEX')
  for i, member in ipairs(members) do members[i] = member:sub(#prefix + 1) end
  return members
end

local function are_over(id, record, count)
  if not has_expiry or count > MOST_LOOKED_AT then return false end
  local arrivals = {}
  for i, entry in ipairs(waiting_entries(id, record)) do arrivals[i] = payloads.arrival_of(entry) end
  for _, expires_at in ipairs(#arrivals > 0 and call('HMGET', expiries, unpack(arrivals)) or {}) do
    if not expires_at or struct.unpack('>d', expires_at) > now then return false end
  end
  return true
end

-- Of the job at that position, which has these flags: the reason for which it is dropped; or nil, and whether it replaces what
-- waits. `record`: that of its id before this call.
function conflicts.of(flags, position, ids, record)
  local id, replaces = ids[position], bit.band(flags, REPLACE) ~= 0
  if not replaces and bit.band(flags, UNLESS_RUNNING) ~= 0 then
    running = running or call('HMGET', flight, unpack(ids))
    if running[position] then return RUNS end
  end
  if bit.band(flags, UNLESS_WAITING) == 0 or not (record or stored[id]) then return nil end
  if record and record:byte(1) == STARTED then return replaces and HAS_CURSOR or WAITS end
  local count = record and count_waiting(id, record) or 0
  local is_free = record and (read_trouble(id).rest or are_over(id, record, count))
  if replaces and (stored[id] or not is_free) then
    if count > MOST_REPLACED then return TOO_MANY end
    replaced = replaced + count
    return nil, true
  end
  return not (replaces or is_free and not stored[id]) and WAITS or nil
end

-- The call puts a payload under the id, which `replaces` what waits there.
function conflicts.note(id, replaces)
  is_dear = is_dear or replaces and stored[id] or stored[id] == REPLACE
  stored[id] = replaces and REPLACE or true
end

-- A payload that takes the place of what waits. Reads what that needs before the first write: a call that fails after it is
-- made again once the shard is repaired.
function conflicts.replace(position, id, entry, record)
  counted_in_flight(id)
  replacing[#replacing + 1] = {position, id, entry, waiting_entries(id, record)}
end

-- Whether a call of fewer jobs should be made: one that replaces less at a time, and nothing that it puts itself.
function conflicts.are_dear() return is_dear or replaced > MOST_REPLACED and #replacing > 1 end

local function take_away(merge, id, gone)
  if not is_in_box(call('HGET', jobs, id)) then return end
  local prefix = box_prefix(id)
  for _, entry in ipairs(gone) do box_remove(merge, prefix, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
end

-- Into `joined`, as join_payloads.lua has it. The payload has the count of its id, and is its head if that is blocked.
function conflicts.replace_all(merge, joined)
  for _, job in ipairs(replacing) do
    local position, id, entry, gone = unpack(job)
    local t, count = read_trouble(id), call('ZSCORE', retry, id)
    local counts = counts_of(id, t, true)
    take_away(merge, id, gone)
    for _, one in ipairs(gone) do
      counts[number_of_arrival(one)] = nil
      enter('superseded', {id, one:sub(1, PLACE)})
    end
    supersede(id, gone, true)
    call('HSET', jobs, id, 's' .. entry)
    if count then counts[number_of_arrival(entry)] = tonumber(count) end
    if t.head then t.head = redis.sha1hex(entry:sub(PLACE + 1)) end
    note_counts(id, t, counts, counted_in_flight(id))
    write_trouble(id, t)
    local due_at = call('ZSCORE', due, id)
    -- Without a due time the times were deleted by hand.
    if not due_at then wait(id, now_text) end
    joined[#joined + 1], joined[#joined + 2] = position, due_at or now_text
  end
end
