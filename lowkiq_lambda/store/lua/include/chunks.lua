--! keys jobs box since retry
--! needs wait put reading_step records payloads shard trouble retry_counts flight started
--! with marks put_latest
--! gives leave_rest take_few take_several take_started
-- Of an id with several payloads a claim takes a chunk: the first of them. Of a few it takes none where it has no room for all
-- of the chunk: `since` would be in use then, and later claims would cost twice as much. Few are as many as lie in a record.
local FEW = 8

-- The first payloads of an id in the box that fit, {entry, ...}, their bytes, and whether there are more.
local function chunk_of(id, most, bytes, passes)
  local prefix, step = box_prefix(id), reading_step(bytes)
  local from, to = box_range(prefix)
  local entries, size = {}, 0
  while #entries < most do
    local members = call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, math.min(step, most - #entries))
    if #members == 0 then return entries, size, false end
    for _, member in ipairs(members) do
      local entry = member:sub(#prefix + 1)
      if size + #entry > bytes and (#entries > 0 or not passes) then return entries, size, true end
      size = size + #entry
      entries[#entries + 1] = entry
      from = '(' .. member
    end
  end
  return entries, size, #call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, 1) > 0
end

-- These entries are the first of the id, so that one command removes them all.
local function take_chunk(merge, id, entries)
  local prefix = box_prefix(id)
  -- First, as it fails where `seen` is damaged: then the payloads are still there.
  for _, entry in ipairs(entries) do forget_seen(merge, prefix, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
  call('ZREMRANGEBYLEX', box, '[' .. prefix, '[' .. prefix .. entries[#entries])
end

-- Such as an id between its chunks: it queues behind what is due now; since keeps its own time for the lag.
local function leave_rest(id, due_at)
  wait(id, due_by)
  call('ZADD', since, 'LT', due_at, id)
end

local function chunk_size_of(t, chunk_size) return math.min(chunk_size or math.huge, t.chunk_limit or math.huge) end

-- Reads all that taking a chunk needs before it is taken, and fails if a part of it is damaged.
local function next_chunk(id, chunk_size, left, bytes, passes)
  local t = read_trouble(id)
  local most = chunk_size_of(t, chunk_size)
  local entries, size, more = chunk_of(id, math.min(most, left), bytes, passes)
  if more and not passes and #entries < most then
    local from, to = box_range(box_prefix(id))
    if call('ZLEXCOUNT', box, from, to) <= FEW then entries = {} end
  end
  if t.retry_counts then counts_of(id, t) end
  return t, entries, size, more
end

-- Its record in flight and what it takes up; the chunk is nil if no payload of the id fits, or there is none.
local function take_several(merge, id, due_at, count, chunk_size, left, bytes, passes)
  -- What was taken of others in this claim would be lost by an error.
  local is_sound, t, entries, size, more = pcall(next_chunk, id, chunk_size, left, bytes, passes)
  if not is_sound or #entries == 0 then return nil end
  if has_marks then entries, more = of_latest.last_of_box(id), false else take_chunk(merge, id, entries) end
  if more then leave_rest(id, due_at) end
  if t.retry_counts then count = take_counts(id, t, entries) elseif count >= 0 then call('ZREM', retry, id) end
  return flight_record(due_at, count, entries), #entries, size, more
end

local function next_few(id, record)
  local t, entries, touched = read_trouble(id), entries_of(record)
  if t.retry_counts then counts_of(id, t) end
  return t, entries, touched
end

-- The same of payloads that lie in the record of the id; what is more than a chunk stays there.
local function take_few(id, record, due_at, count, chunk_size, left, bytes, passes)
  local is_sound, t, entries, touched = pcall(next_few, id, record)
  if not is_sound then return nil end
  local chunk, rest, size, most = {}, {}, 0, chunk_size_of(t, chunk_size)
  for _, entry in ipairs(entries) do
    local fits = #chunk < math.min(most, left) and (size + #entry <= bytes or (#chunk == 0 and passes))
    if fits and #rest == 0 then
      chunk[#chunk + 1], size = entry, size + #entry
    else
      rest[#rest + 1] = entry
    end
  end
  if #chunk == 0 or (#rest > 0 and #chunk < most and not passes) then return nil end
  if #rest > 0 then
    call('HSET', jobs, id, record_of(rest, touched))
    leave_rest(id, due_at)
  end
  if t.retry_counts then count = take_counts(id, t, chunk) elseif count >= 0 then call('ZREM', retry, id) end
  return flight_record(due_at, count, chunk), #chunk, size, #rest > 0
end

local function next_started(id)
  local t, given = read_trouble(id), started_of(id)
  local entries, size = read_handed(given, 1), 0
  for _, entry in ipairs(entries) do size = size + #entry end
  if t.retry_counts then counts_of(id, t) end
  return t, given, entries, size
end

-- The same of a started job, which is handed what it was handed before, all of it and nothing else.
local function take_started(id, record, due_at, count, left, bytes, passes)
  local is_sound, t, given, entries, size = pcall(next_started, id)
  if not is_sound or ((#entries > left or size > bytes) and not passes) then return nil end
  drop_started(id, record, given)
  local from, to = box_range(box_prefix(id))
  local more = #call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, 1) > 0
  if more then leave_rest(id, due_at) end
  if t.retry_counts then count = take_counts(id, t, entries) elseif count >= 0 then call('ZREM', retry, id) end
  return struct.pack('>dd', due_at, count) .. given, #entries, size, more
end
