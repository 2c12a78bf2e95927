--! keys timetable
--! needs sound sound_ids
-- Records of schedule entries: one that no script can read is set aside, and an entry of code is new again.
local function are_times(times)
  return type(times) == 'table' and type(times[1]) == 'number' and type(times[2]) == 'number'
end

local function is_entry_record(packed)
  local record = table_in(packed)
  if not record or not is_any(record.known, 'nil', 'table') or not is_any(record.history, 'nil', 'table') then return false end
  for name in pairs(record) do
    if not is_any(name, 'string') then return false end
  end
  for _, field in ipairs({'last', 'since', 'on', 'off'}) do
    if not is_number(record[field], 0) then return false end
  end
  for digest, times in pairs(record.known or {}) do
    if not is_any(digest, 'string') or not are_times(times) then return false end
  end
  for at, noted in pairs(record.history or {}) do
    if type(at) ~= 'number' or not are_times(noted) or not is_any(noted[3], 'string') then return false end
  end
  if not is_any(record.id, 'nil', 'string') then return false end
  if not record.definition then return not record.digest and not record.since end
  return is_any(record.definition, 'string') and is_any(record.digest, 'string') and record.since ~= nil
end

local function check_entry_record(name, packed)
  local why = not is_utf8(name) and 'the name is no text' or not is_entry_record(packed) and 'the record is none of an entry'
  if why then take_away('timetable', timetable, name, packed, why) end
end
