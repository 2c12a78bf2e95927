--! keys due jobs failures debouncing
--! needs receive_entries records payloads wait flight started trouble retry_counts shard put_row
--! with marks put_latest
--! with expiry expiries
--! gives receive_waiting
-- Payloads that waited elsewhere, as carry_waiting.lua packs them, join those that were pushed here since; a second copy
-- changes nothing. The notes of the id are those of the row: payloads here are new, and join the row as a push joins.
local LATEST_OF = '\255'

local function keep_touched(id, touched)
  local record = call('HGET', jobs, id)
  if is_in_box(record) then
    local last = payloads.later(record:sub(2), touched)
    if last ~= record:sub(2) then call('HSET', jobs, id, record:sub(1, 1) .. last) end
    return
  end
  local entries, own = entries_of(record)
  local last = payloads.later(own, touched)
  if last ~= own then call('HSET', jobs, id, record_of(entries, last)) end
end

-- Where pushes put the id off, those to here go on from there.
local function time_of(row)
  if not debouncing then return row.at end
  if not row.debounces then
    call('ZREM', debouncing, row.id, LATEST_OF .. row.id)
    return row.at
  end
  local given, waits_until = unpack(call('ZMSCORE', debouncing, row.id, LATEST_OF .. row.id))
  local at, waiting = row.at, call('ZSCORE', due, row.id)
  if given and waits_until and waiting and tonumber(given) == tonumber(waiting) and tonumber(given) > tonumber(at) then
    at = tonumber(given) < tonumber(row.debounces) and given or row.debounces
  end
  call('ZADD', debouncing, at, row.id, row.debounces, LATEST_OF .. row.id)
  -- As a push into the shard has it: a minute after the last of it is over.
  local ends_in = math.ceil((math.max(now, tonumber(row.debounces)) - now + 60) * 1000)
  if call('PTTL', debouncing) < ends_in then call('PEXPIRE', debouncing, string.format('%.0f', ends_in)) end
  return at
end

-- Of payloads that are about to be put, as they may join others: a copy that was put before must not change them again.
local function keep_expiries_of(entries, row)
  local wanted = {}
  for _, entry in ipairs(entries) do wanted[entry:sub(9, PLACE)] = true end
  for i = 1, #row.expiries, 2 do
    if wanted[row.expiries[i]] then write_expiries({row.expiries[i], row.expiries[i + 1]}) end
  end
end

local function receive_waiting(merge, row)
  local id = row.id
  receive_what_entries_have(row)
  local record, here = call('HGET', jobs, id), read_trouble(id)
  local counts, t = counts_of(id, here, record), row.trouble or here
  add_counts(counts, row)
  if row.started and not started_of(id) then
    local entries, progress = read_handed(row.started, 1)
    if has_expiry and row.expiries then keep_expiries_of(entries, row) end
    if not has_marks or of_latest.keeps_started(id, entries, record) then
      keep_started(merge, id, entries, progress, call('HGET', jobs, id))
    end
  end
  for _, entry in ipairs(row.entries) do
    if not lies_in(call('HGET', jobs, id), id, entry) then
      if has_expiry and row.expiries then keep_expiries_of({entry}, row) end
      put_counted(counts, merge, id, entry)
    end
  end
  if row.touched ~= UNTOUCHED then keep_touched(id, row.touched) end
  wait(id, time_of(row))
  keep_notes(row)
  if row.failures then call('HSET', failures, id, cmsgpack.pack(row.failures)) end
  t.retry_counts = nil
  note_counts(id, t, counts)
  write_trouble(id, t)
  note_longest(row.entries)
end
