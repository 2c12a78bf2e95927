--! keys due jobs box since retry errors trouble suspects debouncing
--! needs cargo carry_entries records payloads put wait page flight started reading_step retry_counts trouble known_of_id suspicion forget_errors
--! gives drop_waiting carry_waiting
-- What waits: of each id what is known of it, and its payloads from the first on, in as many rows as it takes. A row is a
-- map of `id`; `at`, when it is due; `touched`; `entries`; and, where there are any, `started`, what a started job was handed
-- (records.lua); `counts`, {arrival number, retry_count, ...} of these payloads; `since`, `error`, `failures`, `trouble`,
-- `suspect`, when it is due as a suspect; `debounces`, the latest time it may get; and what carry_entries.lua adds.

local function leave_nothing(id)
  wait_no_more(id)
  call('HDEL', jobs, id)
  call('ZREM', since, id)
  call('ZREM', retry, id)
  call('HDEL', trouble, id)
  drop_suspect(id)
  forget_errors({id})
end

-- `given`: '1' where the started job has gone, else '0', and the place up to which its payloads have, or ''.
local function drop_waiting(id, given)
  local record, upto = call('HGET', jobs, id), given:sub(2)
  if not record then return end
  if not is_in_box(record) then
    -- It is the only row of its id.
    if upto ~= '' then leave_nothing(id) end
    return
  end
  local prefix, handed_over = box_prefix(id), record:byte(1) == STARTED and given:sub(1, 1) == '1' and started_of(id)
  if handed_over then drop_started(id, record, handed_over) end
  if upto ~= '' then call('ZREMRANGEBYLEX', box, '[' .. prefix, '(' .. prefix .. upto) end
  local from, to = box_range(prefix)
  if started_of(id) or call('ZLEXCOUNT', box, from, to) > 0 then
    -- It was that of the oldest, where nothing else is noted.
    if not read_trouble(id).retry_counts then call('ZREM', retry, id) end
    return
  end
  leave_nothing(id)
end

local function note_debouncing(row, id)
  local given, latest = unpack(call('ZMSCORE', debouncing, id, '\255' .. id))
  if given and latest and tonumber(given) == tonumber(row.at) then row.debounces = latest end
end

local function load_id(id, at, record, has_more_to_tell)
  local row, upto, all, handed_over = {id = id, at = at}, '', nil, nil
  if is_in_box(record) then
    row.touched = record:sub(2)
    handed_over = record:byte(1) == STARTED and started_of(id)
    row.entries = page(box, id, '', cargo_records, cargo_bytes)
    all = {unpack(row.entries)}
  else
    row.entries, row.touched = entries_of(record)
    all = row.entries
  end
  if handed_over then
    local entries, progress = read_handed(handed_over, 1)
    for _, entry in ipairs(entries) do all[#all + 1] = entry end
    row.started = handed(moved_all(entries), progress)
  end
  if #all == 0 then error('DAMAGED id without payloads') end
  if #row.entries > 0 then
    local last = row.entries[#row.entries]
    upto = last:sub(1, PLACE - 6) .. struct.pack('>I6', number_of_arrival(last) + 1)
  end
  if row.touched ~= UNTOUCHED then row.touched = moved_arrival(row.touched) end
  if has_more_to_tell then note_what_is_known(row, id, record, all, base) end
  if debouncing then note_debouncing(row, id) end
  add_what_entries_have(row, all)
  row.entries = moved_all(row.entries)
  load('waiting', id, (handed_over and '1' or '0') .. upto, row, #all)
end

local function carry_waiting()
  local has_more_to_tell = call('EXISTS', since, retry, errors, trouble, suspects) > 0
  local from = 0
  while not is_full() do
    local step = math.max(1, math.min(cargo_records, reading_step(cargo_bytes), 1000))
    local listed, ids = call('ZRANGE', due, from, from + step - 1, 'WITHSCORES'), {}
    if #listed == 0 then return end
    for i = 1, #listed, 2 do ids[(i + 1) / 2] = listed[i] end
    for i, record in ipairs(call('HMGET', jobs, unpack(ids))) do
      if is_full() then return end
      if not record then error('DAMAGED id without payloads') end
      load_id(ids[i], listed[2 * i], record, has_more_to_tell)
    end
    from = from + step
  end
end
