--! keys due jobs retry errors failures flight refs rows morgue
--! needs records flight started keep_error failures morgue_bytes trouble retry_counts wait shard action journal touched untouched comes_before in_use put_row
--! with marks put_latest marks
--! with expiry expiries
--! with tracking items mark_items
--! with requests rest_paused
--! gives is_superseded put_again
-- Payloads that an action took away wait again. They join what was pushed since as a push does. The id gets the notes
-- of the row, unless it runs or has failed since: then its own count.
local function revive(found)
  for i = 1, #found, 2 do
    call('HSET', refs, found[i], found[i + 1])
    for _, ref in ipairs(each_ref(found[i + 1])) do call('HINCRBY', rows, 'v' .. ref:sub(1, TASK), 1) end
    mark_kept({found[i + 1]}, 'e', REASON.PUT_BACK)
  end
  note_use('tracking', true)
end

local function keep_expiries_again(found)
  for i = 1, #found, 2 do write_expiries({found[i], found[i + 1]}) end
end

local function is_superseded(id, entries)
  local mark = has_marks and marks_of({id})[1]
  return mark and #entries > 0 and comes_before(entries[#entries]:sub(1, 8), mark)
end

-- A payload may join an equal one that came since: its place may be another then.
local function put_all(id, row, counts)
  local put_entries, merged = {}, false
  for _, entry in ipairs(row.entries) do
    if not lies_in(call('HGET', jobs, id), id, entry) then
      if put_counted(counts, merge, id, entry) then merged = true else put_entries[#put_entries + 1] = entry end
    end
  end
  return put_entries, merged
end

-- The dead payloads of the id have them, too.
local function keep_failures(id, noted)
  local is_dead, before = call('ZSCORE', morgue, id), failures_size(failures_of(id))
  call('HSET', failures, id, cmsgpack.pack(noted))
  if is_dead then count_dead(failures_size(noted) - before) end
end

local function due_again(row, record, is_flown, keeps_own)
  local at = call('ZSCORE', due, row.id)
  if is_flown then return at or now_text end
  if record and at and (keeps_own or row.more) then return at end
  return row.at or at or now_text
end

-- `word`: that of the journal. Returns nil, or why it may not; and the row by which this can be undone.
local function put_again(row, word)
  local id = row.id
  local record, is_flown, here = call('HGET', jobs, id), call('HEXISTS', flight, id) == 1, read_trouble(id)
  local keeps_own = is_flown or call('ZSCORE', retry, id) or here.blocked_since or (row.more and record)
  local handed_over, progress = {}, nil
  if row.started then handed_over, progress = read_handed(row.started, 1) end
  if is_superseded(id, #row.entries > 0 and row.entries or handed_over) then return 'superseded' end
  for _, entry in ipairs(handed_over) do enter(word, {id, entry:sub(1, PLACE)}) end
  for _, entry in ipairs(row.entries) do enter(word, {id, entry:sub(1, PLACE)}) end
  local inverse = {id = id, entries = {}, was = record and touched_of(record) or UNTOUCHED, more = row.more}
  inverse.due_before = record and call('ZSCORE', due, id) or nil
  local counts = counts_of(id, here, record)
  add_counts(counts, row)
  if has_tracking and row.refs then revive(row.refs) end
  if has_expiry and row.expiries then keep_expiries_again(row.expiries) end
  local merged = false
  if row.started and not is_flown and not started_of(id)
    and (not has_marks or of_latest.keeps_started(id, handed_over, record)) then
    keep_started(merge, id, handed_over, progress, call('HGET', jobs, id))
    inverse.started = row.started
  else
    for i = #handed_over, 1, -1 do table.insert(row.entries, 1, handed_over[i]) end
  end
  inverse.entries, merged = put_all(id, row, counts)
  local t = keeps_own and here or row.trouble or here
  wait(id, due_again(row, record, is_flown, keeps_own))
  inverse.due = call('ZSCORE', due, id)
  if not keeps_own then
    keep_notes(row)
    if row.failures then keep_failures(id, row.failures) end
  elseif row.error and next(counts) and call('HEXISTS', errors, id) == 0 then
    keep_error(errors, id, row.error)
  end
  -- A suspect goes first whenever it is due.
  if has_requests then rest_paused(id) end
  t.retry_counts = nil
  note_counts(id, t, counts, is_flown and counted_in_flight(id) or nil)
  write_trouble(id, t)
  note_longest(row.entries)
  marking.set_touched(id, marking.stamp())
  inverse.stamp, inverse.counts, inverse.abandoned = marking.stamp(), row.counts, t.abandoned and 1 or nil
  -- A payload that joined a later push is one with that.
  if not merged then return nil, inverse end
end
