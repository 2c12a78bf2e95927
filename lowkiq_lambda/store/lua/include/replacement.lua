--! keys jobs box due retry expiries
--! needs wait records payloads put trouble retry_counts supersede journal shard
--! gives replacement
-- One payload in the place of all that wait under its id, whose time and count stay.
local replacement, MOST_LOOKED_AT = {}, 100

function replacement.count(id, record)
  if is_in_box(record) then return call('ZLEXCOUNT', box, box_range(box_prefix(id))) end
  local _, count = payloads.layout(record)
  return count
end

local function entries_under(id, record)
  if not is_in_box(record) then return (entries_of(record)) end
  local prefix = box_prefix(id)
  local from, to = box_range(prefix)
  local members = call('ZRANGE', box, from, to, 'BYLEX')
  for i, member in ipairs(members) do members[i] = member:sub(#prefix + 1) end
  return members
end

-- Whether the id waits for no work: all its payloads are over, or they follow a dead head to the morgue.
function replacement.is_free(id, record)
  if read_trouble(id).rest then return true end
  if not has_expiry or replacement.count(id, record) > MOST_LOOKED_AT then return false end
  local arrivals = {}
  for i, entry in ipairs(entries_under(id, record)) do arrivals[i] = payloads.arrival_of(entry) end
  for _, expires_at in ipairs(#arrivals > 0 and call('HMGET', expiries, unpack(arrivals)) or {}) do
    if not expires_at or struct.unpack('>d', expires_at) > now then return false end
  end
  return true
end

-- What waits, {entry, ...}. Reads what `put_all` will, before the first write: a call that fails after it is made again once
-- the shard is repaired.
function replacement.read(id, record)
  counted_in_flight(id)
  return entries_under(id, record)
end

local function empty_box(merge, id, gone)
  if not is_in_box(call('HGET', jobs, id)) then return end
  local prefix = box_prefix(id)
  for _, entry in ipairs(gone) do box_remove(merge, prefix, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
end

-- A payload has the count of its id from now on, and is its head if that is blocked.
local function pass_on(id, entry, gone)
  local t, count = read_trouble(id), call('ZSCORE', retry, id)
  local counts = counts_of(id, t, true)
  for _, one in ipairs(gone) do counts[number_of_arrival(one)] = nil end
  if count then counts[number_of_arrival(entry)] = tonumber(count) end
  if t.head then t.head = redis.sha1hex(entry:sub(PLACE + 1)) end
  return t, counts
end

-- `changes`: {position, id, entry, what waits}; `joined`: as join_payloads.lua has it.
function replacement.put_all(merge, token, changes, joined)
  for _, job in ipairs(changes) do
    local position, id, entry, gone = unpack(job)
    local t, counts = pass_on(id, entry, gone)
    empty_box(merge, id, gone)
    for _, one in ipairs(gone) do enter('superseded', {id, one:sub(1, PLACE)}) end
    supersede(id, gone, true)
    call('HSET', jobs, id, 's' .. entry)
    note_counts(id, t, counts, counted_in_flight(id))
    write_trouble(id, t)
    local due_at = call('ZSCORE', due, id)
    -- Without a due time the times were deleted by hand.
    if not due_at then wait(id, now_text) end
    joined[#joined + 1], joined[#joined + 2] = position, due_at or now_text
  end
  write_journal(token)
end
