--! keys jobs since
--! needs wait records payloads retry_counts flight started
--! with tracking mark_items
--! with marks put_latest
--! gives put_back give_back
-- Puts delivered payloads back among what waits, due at a time, the oldest of them with a count that the caller
-- decides; the caller writes the troubles. With `progress` they stay apart: they are what a started job goes on with.
-- `message`: for their items.
local function put_back(merge, id, t, entries, due_at, retry_count, progress, message)
  -- Before they may join what waits.
  if has_tracking then mark_items(arrivals_of(entries), 'e', message) end
  local record = call('HGET', jobs, id)
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
  wait(id, due_at)
  call('ZREM', since, id)
  if next(counts) then note_counts(id, t, counts) end
end

-- As it was before the claim: the same time, the same counts.
local function give_back(merge, id, t, record, message)
  local due_at, retry_count, entries, progress = read_flight(record)
  put_back(merge, id, t, entries, due_at, retry_count, progress, message)
  return due_at
end
