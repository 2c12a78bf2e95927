--! keys jobs box morgue morgue_payloads morgue_errors
--! needs action records payloads put flight started retry_counts trouble texts morgue put_row
--! gives replacing
-- Another payload in the place of one that waits, or that is dead: place, score, time and count stay.
local replacing = {}

local LOOKED_AT_ONCE = 1000

local function entry_among(entries, number)
  for _, entry in ipairs(entries) do
    if number_of_arrival(entry) == number then return entry end
  end
end

local function entry_in(key, id, number)
  local prefix = box_prefix(id)
  local from, to = box_range(prefix)
  while true do
    local members = call('ZRANGE', key, from, to, 'BYLEX', 'LIMIT', 0, LOOKED_AT_ONCE)
    if #members == 0 then return nil end
    for i, member in ipairs(members) do members[i] = member:sub(#prefix + 1) end
    local entry = entry_among(members, number)
    if entry then return entry end
    from = '(' .. prefix .. members[#members]
  end
end

-- The entry with that arrival number, and what the started job that it belongs to was handed.
function replacing.entry_waiting(id, number)
  local record = call('HGET', jobs, id)
  if not record then return nil end
  if not is_in_box(record) then return entry_among(entries_of(record), number) end
  local given = record:byte(1) == STARTED and started_of(id)
  local entry = given and entry_among(read_handed(given, 1), number)
  if entry then return entry, given end
  return entry_in(box, id, number)
end

function replacing.entry_dead(id, number) return entry_in(morgue_payloads, id, number) end

-- Takes it out of its record, which may be left without any.
local function take_from_record(id, record, entry)
  if is_in_box(record) then
    return box_remove(merge, box_prefix(id), entry:sub(1, PLACE), entry:sub(PLACE + 1))
  end
  local _, left = payloads.parted(record, function(other) return other == entry end)
  if left then call('HSET', jobs, id, left) else call('HDEL', jobs, id) end
end

-- The payloads that a started job was handed, with this in place of the entry; and its progress.
local function handed_with(given, entry, replaced)
  local entries, progress = read_handed(given, 1)
  for i, other in ipairs(entries) do
    if other == entry then entries[i] = replaced end
  end
  return entries, progress
end

-- Of a started job: with its cursor, or one by one without it.
local function replace_started(id, record, given, entry, replaced, keeps_cursor, counts)
  local entries, progress = handed_with(given, entry, replaced)
  drop_started(id, record, given)
  if keeps_cursor then return keep_started(merge, id, entries, progress, call('HGET', jobs, id)) end
  local gone
  for _, other in ipairs(entries) do
    local went = put_counted(counts, merge, id, other)
    if other == replaced then gone = went end
  end
  return gone
end

-- A head that is blocked stays so.
local function note_head(t, from, to)
  if t.head == redis.sha1hex(from:sub(PLACE + 1)) then t.head = redis.sha1hex(to:sub(PLACE + 1)) end
end

-- Returns whether it became one with an equal payload.
function replacing.replace_waiting(id, entry, given, payload, keeps_cursor)
  local record, t, replaced = call('HGET', jobs, id), read_trouble(id), entry:sub(1, PLACE) .. payload
  local counts, gone = counts_of(id, t, record), nil
  if given then
    gone = replace_started(id, record, given, entry, replaced, keeps_cursor, counts)
  else
    take_from_record(id, record, entry)
    gone = put_counted(counts, merge, id, replaced)
  end
  note_head(t, entry, replaced)
  t.retry_counts = nil
  note_counts(id, t, counts, counted_in_flight(id))
  write_trouble(id, t)
  note_longest({replaced})
  return gone and true or false
end

-- Into the row by which it can be undone: the payloads as they are now, and what a started job was handed, with its cursor, or
-- `lost` with it.
function replacing.note(row, given, payload, keeps_cursor)
  local replaced = row.old:sub(1, PLACE) .. payload
  if not given then
    row.entries = {replaced}
  elseif keeps_cursor then
    row.entries, row.started = {}, started_of(row.id)
  else
    row.entries, row.lost = handed_with(given, row.old, replaced), given
  end
end

-- Payloads that wait one by one are a started job again, as it was when it lost its cursor.
function replacing.start_again(row, edited)
  local id, t = row.id, read_trouble(row.id)
  local counts = counts_of(id, t, call('HGET', jobs, id))
  for _, entry in ipairs(row.entries) do take_from_record(id, call('HGET', jobs, id), entry) end
  local entries, progress = read_handed(row.lost, 1)
  keep_started(merge, id, entries, progress, call('HGET', jobs, id))
  note_head(t, edited, row.old)
  note_counts(id, t, counts, counted_in_flight(id))
  write_trouble(id, t)
end

function replacing.replace_dead(id, entry, payload)
  local prefix, place, size = box_prefix(id), entry:sub(1, PLACE), #morgue_members(id, LOOKED_AT_ONCE)
  kill(merge, id, place, payload, error_of(morgue_errors, id) or '', nil, nil, call('ZSCORE', morgue, id))
  forget(id, {prefix .. entry})
  note_longest({place .. payload})
  return call('ZSCORE', morgue_payloads, prefix .. place .. payload) == false or #morgue_members(id, LOOKED_AT_ONCE) < size
end
