--! keys due box retry
--! needs shard wait records put trouble retry_counts
--! with debouncing debounce
--! gives check_joining join_payloads
-- Payloads that join what waits under their ids: {position, id, entry, record of the id or false, the due time that the
-- job was given or nil}, and from `check_joining` on the retry_count of the id, or false.

-- Reads what joining reads, before the first write. A call that fails after it is made again once the shard is repaired,
-- and only merging would show that it was applied in part.
local function check_joining(joining)
  local retry_counts = {}
  call('ZCARD', box)
  for _, job in ipairs(joining) do
    local id, record = job[2], job[4]
    if retry_counts[id] ~= nil then
      -- The payload before this one changes the record.
      job[4] = false
    elseif record then
      retry_counts[id] = call('ZSCORE', retry, id)
      if record:byte(1) ~= SEVERAL and record:byte(1) ~= STARTED then read_single(record) end
      if retry_counts[id] then
        counts_of(id, read_trouble(id), true)
        counted_in_flight(id)
      end
    end
    job[6] = retry_counts[id] or false
  end
end

-- Returns whether the payload was superseded.
local function join(merge, id, entry, record, retry_count)
  local gone
  if retry_count then
    local t = read_trouble(id)
    local counts = counts_of(id, t, true)
    gone = put_counted(counts, merge, id, entry, record)
    note_counts(id, t, counts, counted_in_flight(id))
    write_trouble(id, t)
  else
    gone = unite(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), record)
  end
  return has_marks and gone == entry:sub(1, PLACE)
end

-- Returns {position, due time of the id, ...} of payloads that joined others, and the earliest of the due times that ids got,
-- or nil. `superseded`, `quiet_text`: as in put_payloads.lua.
local function join_payloads(merge, joining, superseded, quiet_text)
  local joined, earliest = {}, nil
  for _, job in ipairs(joining) do
    local position, id, entry, record, planned_at, retry_count = unpack(job, 1, 6)
    local is_superseded, later = join(merge, id, entry, record or nil, retry_count), nil
    local due_at = call('ZSCORE', due, id)
    if has_debouncing and quiet_text and due_at and not (planned_at or is_superseded or retry_count) then
      later = put_off(id, due_at)
      if later then earliest = math.min(earliest or math.huge, tonumber(later)) end
    end
    -- Without a due time the times were deleted by hand.
    if later or not due_at then wait(id, later or now_text) end
    if is_superseded then
      superseded[#superseded + 1] = job
    else
      joined[#joined + 1], joined[#joined + 2] = position, later or due_at or now_text
    end
  end
  return joined, earliest
end
