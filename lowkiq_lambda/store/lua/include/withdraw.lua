--! keys jobs box since retry trouble flight
--! needs wait action trouble retry_counts forget_errors suspicion make_due put records payloads page started flight
--! with undo undo_waiting
--! gives forget_waiting begin_anew part_record withdraw
-- Takes away what waits under an id; what is in flight stays, and so does what is known of it.
local function touched_since(touched) return struct.unpack('>I6', touched) > looked end

local function forget_waiting(id)
  call('HDEL', jobs, id)
  wait_no_more(id)
  for _, key in ipairs({since, retry}) do call('ZREM', key, id) end
  if call('HEXISTS', flight, id) == 1 then
    local t = read_trouble(id)
    keep_counts(id, t, true)
    return write_trouble(id, t)
  end
  forget_errors({id})
  call('HDEL', trouble, id)
  drop_suspect(id)
end

-- What came after the look did not fail with what was taken away.
local function begin_anew(id)
  if not call('ZSCORE', retry, id) or not make_due(id) then return end
  call('ZREM', retry, id)
  forget_errors({id})
end

-- A started job goes as a whole, if none of what it was handed came since the look. Returns whether it went.
local function withdraw_started(id, record, take)
  local given = started_of(id)
  if not given then error('DAMAGED started job') end
  local entries, progress = read_handed(given, 1)
  charge(#entries, #given)
  for _, entry in ipairs(entries) do
    if newer(entry) then return false end
  end
  if has_undo then keep_waiting(id, {}, given) end
  for _, entry in ipairs(entries) do
    take(id, entry:sub(1, PLACE), entry:sub(PLACE + 1), #entries == 1 and progress or nil)
  end
  drop_started(id, record, given)
  -- What waits behind it waited for it alone. Of an id that has failed all starts anew, which is seen by its retry_count.
  if not call('ZSCORE', retry, id) then make_due(id) end
  return true
end

-- Of an id whose payloads lie in its record those that `goes` is true of leave it, and `take` is given each.
local function part_record(id, record, goes, take)
  local gone, left = payloads.parted(record, goes)
  if #gone == 0 then return false end
  if has_undo then keep_waiting(id, gone) end
  for _, entry in ipairs(gone) do take(id, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
  if not left then
    forget_waiting(id)
  else
    call('HSET', jobs, id, left)
    begin_anew(id)
  end
  return true
end

local function withdraw_from_record(id, record, take)
  charge(0, #record)
  local _, touched = entries_of(record)
  if touched_since(touched) then return false end
  return part_record(id, record, function(entry) return not newer(entry) end, take)
end

-- Gives each payload that waited at the look to `take`, with the progress that is of it alone; with `failed_only` of an id that has failed. An id of which
-- an equal payload was pushed since is left as it is: that push is one of what waits. So is one whose started job came
-- since.
local function withdraw(id, after, again, failed_only, take)
  local record = call('HGET', jobs, id)
  if not record or (failed_only and not call('ZSCORE', retry, id)) then return false end
  local kind = record:byte(1)
  if not is_in_box(record) then return withdraw_from_record(id, record, take) end
  if touched_since(record:sub(2)) then return false end
  if kind == STARTED then
    if not withdraw_started(id, record, take) then return false end
    again = true
  end
  local old, more = old_entries(box, id, after)
  local prefix = box_prefix(id)
  if has_undo and #old > 0 then keep_waiting(id, old, nil, again) end
  for _, entry in ipairs(old) do
    local place, payload = entry:sub(1, PLACE), entry:sub(PLACE + 1)
    take(id, place, payload)
    box_remove(merge, prefix, place, payload)
  end
  if #page(box, id, '', 1, 1) == 0 then
    forget_waiting(id)
    return kind == STARTED or #old > 0
  end
  if not more and (again or #old > 0) then begin_anew(id) end
  return kind == STARTED or #old > 0, more
end
