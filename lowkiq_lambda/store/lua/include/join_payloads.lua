--! keys jobs due box retry
--! needs shard wait records payloads put trouble retry_counts
--! with debouncing debounce
--! gives check_joining join_payloads
-- Payloads that join what waits under their ids: {position, id, entry, record of the id, the due time that the job was given
-- or false, false}; `check_joining` sets the last to the retry_count of the id where it has one.

-- Of these jobs the ids; and {id, record, ...} of ids that have not failed, where payloads lie in the records, as joining makes
-- them, with the place of each id's record in that list. `unsettled`: ids whose next payload does not simply go behind the
-- others.
local ids, written, place_of, unsettled = {}, {}, {}, {}

-- Reads what joining reads, and joins what is joined without writing, before the first write. A call that fails after it is
-- made again once the shard is repaired, and only merging would show that it was applied in part. Returns how many cost much:
-- they join what lies in the box, or move payloads there, or are in some other way not the usual.
local function check_joining(merge, joining)
  local retry_counts, count, dear = {}, 0, 0
  for i = 1, #joining do ids[i] = joining[i][2] end
  call('ZCARD', box)
  if call('ZCARD', retry) > 0 then retry_counts = call('ZMSCORE', retry, unpack(ids)) end
  for i = 1, #joining do
    local job, id = joining[i], ids[i]
    local record, entry, retry_count, at = job[4], job[3], retry_counts[i], place_of[id]
    if at then
      -- The payload before this one changes the record.
      local appended = at > 0 and not unsettled[id] and payloads.appended(merge, written[at], entry)
      job[4], job[6] = nil, retry_count
      if appended then written[at], job[3] = appended, false elseif at > 0 then unsettled[id] = true end
      if not appended or retry_count then dear = dear + 1 end
    else
      local in_record = not is_in_box(record)
      local appended = in_record and payloads.appended(merge, record, entry)
      if not appended or retry_count or has_marks then dear = dear + 1 end
      if in_record and not (retry_count or has_marks) then
        count = count + 2
        written[count - 1], written[count], place_of[id] = id, appended or record, count
        if appended then job[3] = false else unsettled[id] = true end
      else
        place_of[id], job[6] = 0, retry_count
        if retry_count then
          counts_of(id, read_trouble(id), true)
          counted_in_flight(id)
        end
      end
    end
  end
  return dear
end

-- Of an id whose record it is: what it becomes, or false, where its payloads move into the box.
local function join_in_record(merge, id, record, entry)
  local entries, known = entries_of(record)
  local touched, gone, kept = payloads.join(merge, entries, known, entry:sub(1, PLACE), entry:sub(PLACE + 1))
  local joined = record_of(entries, touched)
  if not joined then box_add_all(merge, id, entries) end
  if gone then note_joined(id, kept, gone) end
  return joined or 'm' .. touched
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
  local is_superseded, moved, joined, count, earliest = {}, {}, {}, 0, nil
  for i = 1, #joining do
    local job, id = joining[i], ids[i]
    local entry, at = job[3], place_of[id]
    if entry and at > 0 and not is_in_box(written[at]) then
      written[at] = join_in_record(merge, id, written[at], entry)
      if is_in_box(written[at]) then
        call('HSET', jobs, id, written[at])
        moved[#moved + 1] = at
      end
    elseif entry then
      is_superseded[i] = join(merge, id, entry, job[4], job[6])
    end
  end
  -- Payloads that came later may have changed these.
  for _, at in ipairs(moved) do written[at] = call('HGET', jobs, written[at - 1]) end
  -- One command for many ids costs a fraction of one for each.
  if #written > 0 then call('HSET', jobs, unpack(written)) end
  local debounces, due_times = has_debouncing and quiet_text, call('ZMSCORE', due, unpack(ids))
  for i = 1, #joining do
    local job, id, due_at, later = joining[i], ids[i], due_times[i], nil
    if debounces and not (job[5] or is_superseded[i] or job[6]) then
      -- A job before this one may have put it off.
      due_at = call('ZSCORE', due, id)
      later = due_at and put_off(id, due_at)
      if later then earliest = math.min(earliest or math.huge, tonumber(later)) end
    end
    -- Without a due time the times were deleted by hand.
    if later or not due_at then wait(id, later or now_text) end
    if is_superseded[i] then
      superseded[#superseded + 1] = job
    else
      joined[count + 1], joined[count + 2], count = job[1], later or due_at or now_text, count + 2
    end
  end
  return joined, earliest
end
