--! keys due jobs box since retry errors flight morgue morgue_payloads morgue_errors
--! needs records payloads failures put page texts flight started
-- Jobs as people look at them, read only.
-- ARGV[4]     'waiting', 'flight' or 'morgue'
-- ARGV[5]     payloads of one job that are shown
-- ARGV[6]     bytes of one job that are shown
-- ARGV[7]     bytes of the largest payload that is shown
-- ARGV[8]     payloads of all jobs that are shown
-- ARGV[9]     bytes of all jobs that are shown
-- ARGV[10]    '1' to show failures too, else ''
-- ARGV[11]    bytes, lower case, that a payload has of each job that is shown, or ''
-- ARGV[12..]  ids
-- Returns {how many ids were looked up, {job, ...}}, a job being {id, due_at or updated_at,
--   retry_count or false, error or false, how many payloads there are, {entry, ...},
--   progress or false, {{time, retry_count, the error in brief, the rule that decided or ''}, ...}}.
local most, bytes, largest, most_in_all, bytes_in_all = unpack(ARGV, 5, 9)
most, bytes, largest = tonumber(most), tonumber(bytes), tonumber(largest)
most_in_all, bytes_in_all = tonumber(most_in_all), tonumber(bytes_in_all)

-- Whether the job is left out, as none of its entries has these bytes.
local function lacks(entries)
  if ARGV[11] == '' then return false end
  for _, entry in ipairs(entries) do
    if entry:lower():find(ARGV[11], PLACE + 1, true) then return false end
  end
  return true
end

-- Of the first payloads those that fit, up to one that is too large.
local function fitting(entries)
  local shown, size = {}, 0
  for i, entry in ipairs(entries) do
    if i > most or #entry - PLACE > largest or (i > 1 and size >= bytes) then break end
    shown[i], size = entry, size + #entry
  end
  most_in_all, bytes_in_all = most_in_all - #shown, bytes_in_all - size
  return shown
end

-- As include/failures.lua has them, of an id with that error.
local function failed(id, error)
  local shown = {}
  if not error or ARGV[10] == '' then return shown end
  local brief = ''
  for i, noted in ipairs(failures_of(id)) do
    brief = noted[3] or brief
    shown[i] = {string.format('%.17g', noted[1]), string.format('%.17g', noted[2]), brief, noted[4] or ''}
    bytes_in_all = bytes_in_all - #brief
  end
  return shown
end

-- Of a started job, or false.
local function shown_progress(progress)
  if progress then bytes_in_all = bytes_in_all - #progress end
  return progress or false
end

local function paged(key, id)
  local from, to = box_range(box_prefix(id))
  return call('ZLEXCOUNT', key, from, to), fitting((page(key, id, '', most, bytes)))
end

local function waiting(id)
  local record = call('HGET', jobs, id)
  if not record then return end
  local count, entries, progress
  local given = record:byte(1) == STARTED and started_of(id)
  if given then
    local handed_over
    handed_over, progress = read_handed(given, 1)
    local from, to = box_range(box_prefix(id))
    count = #handed_over + call('ZLEXCOUNT', box, from, to)
    for _, entry in ipairs((page(box, id, '', most, bytes))) do handed_over[#handed_over + 1] = entry end
    entries = fitting(handed_over)
  elseif is_in_box(record) then
    count, entries = paged(box, id)
  else
    local all = entries_of(record)
    count, entries = #all, fitting(all)
  end
  if lacks(entries) then return end
  local due_at = call('ZSCORE', since, id) or call('ZSCORE', due, id)
  local error = error_of(errors, id)
  return {id, due_at, call('ZSCORE', retry, id), error, count, entries, shown_progress(progress), failed(id, error)}
end

local function in_flight(id)
  local record = call('HGET', flight, id)
  if not record then return end
  local due_at, retry_count, entries, progress = read_flight(record)
  local text, error, shown = string.format, error_of(errors, id), fitting(entries)
  if lacks(shown) then return end
  return {
    id, text('%.17g', due_at), text('%.17g', retry_count), error, #entries, shown,
    shown_progress(progress), failed(id, error),
  }
end

local function dead(id)
  local updated_at = call('ZSCORE', morgue, id)
  if not updated_at then return end
  local count, entries = paged(morgue_payloads, id)
  if lacks(entries) then return end
  local kept = call('HMGET', morgue_errors, id, '\255' .. id)
  local error, place_and_progress = text_of(morgue_errors, kept[1]), text_of(morgue_errors, kept[2])
  local progress = shown_progress(place_and_progress and place_and_progress:sub(PLACE + 1))
  return {id, updated_at, false, error, count, entries, progress, failed(id, error)}
end

local look_up, ids_read, shown = ({waiting = waiting, flight = in_flight, morgue = dead})[ARGV[4]], 0, {}
for i = 12, #ARGV do
  if most_in_all < 1 or bytes_in_all < 1 then break end
  shown[#shown + 1] = look_up(ARGV[i])
  ids_read = ids_read + 1
end
return {ids_read, shown}
