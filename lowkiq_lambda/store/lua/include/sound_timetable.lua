--! keys timetable
--! needs sound sound_ids
--! gives check_entry_record
-- Records of schedule entries: one that no script can read is set aside, and an entry of code is new again.
-- Two times, and a text after them where it says so; then perhaps a number.
local function are_times(times, has_text)
  if type(times) ~= 'table' or not is_any(times[3], has_text and 'string' or 'nil') then return false end
  if times[4] ~= nil and not (has_text and is_number(times[4], 0)) then return false end
  local count = 0
  for _ in pairs(times) do count = count + 1 end
  return count == (has_text and 3 or 2) + (times[4] and 1 or 0) and times[1] and times[2] and is_number(times[1], 0) and is_number(times[2], 0)
end

-- No script writes an empty one.
local function is_filled(part) return part == nil or type(part) == 'table' and next(part) ~= nil end

local function is_entry_record(packed)
  local record = table_in(packed)
  if not record or not is_filled(record.known) or not is_filled(record.history) then return false end
  for name in pairs(record) do
    if not is_any(name, 'string') then return false end
  end
  for _, field in ipairs({'last', 'since', 'on', 'off'}) do
    if not is_number(record[field], 0) then return false end
  end
  for digest, times in pairs(record.known or {}) do
    if not is_any(digest, 'string') or not are_times(times) then return false end
  end
  local history = record.history or {}
  for at, noted in pairs(history) do
    if type(at) ~= 'number' or history[at - 1] == nil and at ~= 1 or not are_times(noted, true) then return false end
  end
  if not is_any(record.id, 'nil', 'string') then return false end
  if not record.definition then return not record.digest and not record.since end
  return is_any(record.definition, 'string') and is_any(record.digest, 'string') and record.since ~= nil
end

local function check_entry_record(name, packed)
  local why = not is_utf8(name) and 'the name is no text' or not is_entry_record(packed) and 'the record is none of an entry'
  if why then take_away('timetable', timetable, name, packed, why) end
end
