--! keys jobs box retry flight expiries
--! needs records payloads put started trouble retry_counts supersede journal shard
--! gives conflicts
-- Pushes that are stored only if their id has no work. Of a packed job: a byte of flags, as store/shard/pushing.py sets them.
-- An id whose waiting payloads are all over has none, nor has one whose payloads follow a dead head to the morgue.
local UNLESS_WAITING, UNLESS_RUNNING, REPLACE, MOST_REPLACED, MOST_LOOKED_AT = 1, 2, 4, 1000, 100
local conflicts, running, stored, replacing, replaced = {}, nil, {}, {}, 0

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
  if bit.band(flags, UNLESS_WAITING) == 0 then return nil end
  if record and record:byte(1) == STARTED then return replaces and HAS_CURSOR or WAITS end
  local count = record and count_waiting(id, record) or 0
  if record and (read_trouble(id).rest or are_over(id, record, count)) then
    return stored[id] and not replaces and WAITS or nil
  end
  if not (record or stored[id]) then return nil end
  if not replaces then return WAITS end
  if count > MOST_REPLACED then return TOO_MANY end
  -- Read before the first write: a call that fails after it is made again once the shard is repaired.
  if record then counted_in_flight(id) end
  replaced = replaced + count
  return nil, true
end

-- The call puts this payload under the id.
function conflicts.note(id, replaces, number, payload)
  stored[id] = true
  if replaces then replacing[#replacing + 1] = {id, number, payload} end
end

-- Whether a call of fewer jobs should replace less at a time.
function conflicts.are_dear() return replaced > MOST_REPLACED and #replacing > 1 end

-- What is before the payload with that arrival number, and the one that is kept: itself, or the equal one that it merged with.
local function parted(merge, id, record, number, payload)
  local gone, kept = {}, nil
  for _, entry in ipairs(waiting_entries(id, record)) do
    local is_equal = merge ~= 'never' and entry:sub(PLACE + 1) == payload
    if is_equal or payloads.arrival_of(entry) == number then
      kept = entry
    elseif payloads.arrival_of(entry) < number then
      gone[#gone + 1] = entry
    end
  end
  return gone, kept
end

local function take_away(merge, id, record, gone)
  if is_in_box(record) then
    local prefix = box_prefix(id)
    for _, entry in ipairs(gone) do box_remove(merge, prefix, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
    return
  end
  local is_gone = {}
  for _, entry in ipairs(gone) do is_gone[entry] = true end
  local _, left = payloads.parted(record, function(entry) return is_gone[entry] end)
  call('HSET', jobs, id, left)
end

-- The payload that stays has the count of its id, and is its head if that is blocked.
local function replace(merge, id, number, payload)
  local record = call('HGET', jobs, id)
  local gone, kept = parted(merge, id, record, number, payload)
  if #gone == 0 or not kept then return end
  local t, count = read_trouble(id), call('ZSCORE', retry, id)
  local counts = counts_of(id, t, record)
  take_away(merge, id, record, gone)
  for _, entry in ipairs(gone) do
    counts[number_of_arrival(entry)] = nil
    enter('superseded', {id, entry:sub(1, PLACE)})
  end
  supersede(id, gone, true)
  if count then counts[number_of_arrival(kept)] = tonumber(count) end
  if t.head then t.head = redis.sha1hex(payload) end
  note_counts(id, t, counts, counted_in_flight(id))
  write_trouble(id, t)
end

-- Once all payloads of the call are put: in their order, so that a later one replaces an earlier one.
function conflicts.replace_all(merge)
  for _, job in ipairs(replacing) do replace(merge, unpack(job)) end
end
