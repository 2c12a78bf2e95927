--! keys jobs since
--! needs wait records payloads retry_counts flight started exists
--! with tracking mark_items
--! with marks put_latest
--! gives put_back give_back
-- Asked once: a call writes `since` only of ids that it claims, behind all that it puts back.
local any_since

-- Puts delivered payloads back among what waits, due at a time, the oldest of them with a count that the caller
-- decides; the caller writes the troubles. With `progress` they stay apart: they are what a started job goes on with.
-- `message`: for their items. `many`: of an id among many, its
-- `record` in jobs, or false, and `times`, which gets {due_at, id}: the caller lets them all wait at once.
local function put_back(merge, id, t, entries, due_at, retry_count, progress, message, many)
  -- Before they may join what waits.
  if has_tracking then mark_items(arrivals_of(entries), 'e', message) end
  local record = many and many.record
  if not many then record = call('HGET', jobs, id) end
  local counts = counts_of(id, t, record)
  if retry_count >= 0 then counts[number_of_arrival(entries[1])] = retry_count end
  if progress and has_marks then
    if of_latest.keeps_started(id, entries, record) then
      keep_started(merge, id, entries, progress, call('HGET', jobs, id))
    else
      counts[number_of_arrival(entries[1])] = nil
    end
  elseif progress then
    keep_started(merge, id, entries, progress, record)
  end
  local waits_alone = not (record or progress or has_marks) and record_of(entries, UNTOUCHED)
  if waits_alone then call('HSET', jobs, id, waits_alone) end
  for _, entry in ipairs((progress or waits_alone) and {} or entries) do
    put_counted(counts, merge, id, entry, record)
    record = nil
  end
  if many then
    many.times[#many.times + 1], many.times[#many.times + 2] = due_at, id
  else
    wait(id, due_at)
  end
  if any_since == nil then any_since = exists(since) end
  if any_since then call('ZREM', since, id) end
  if next(counts) then note_counts(id, t, counts) end
end

-- As it was before the claim: the same time, the same counts. `flown`: the record in flight.
local function give_back(merge, id, t, flown, message, many)
  local due_at, retry_count, entries, progress = read_flight(flown)
  put_back(merge, id, t, entries, due_at, retry_count, progress, message, many)
  return due_at
end
