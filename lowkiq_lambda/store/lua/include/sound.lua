--! needs records started
--! gives finite whole is_utf8 entries_in is_record parts_of handed_in flown started_in table_in is_any is_number is_trouble
--! gives is_group are_failures is_answer
-- Whether values are sound. These functions never raise an error.
local function finite(text)
  local number = tonumber(text)
  return number and number == number and math.abs(number) < math.huge and number
end

-- What HINCRBY accepts, and what a double holds exactly.
local function whole(text)
  return text:find('^%-?%d+$') and #text < 20 and math.abs(tonumber(text)) < 2 ^ 53
end

-- The second byte of what more than one byte stands for, by the first; as in RFC 3629.
local function is_utf8(text)
  local at = text:find('[\128-\255]')
  while at do
    local first, second = text:byte(at, at + 1)
    local low = first == 0xE0 and 0xA0 or first == 0xF0 and 0x90 or 0x80
    local high = first == 0xED and 0x9F or first == 0xF4 and 0x8F or 0xBF
    local more = first < 0xC2 and 0 or first < 0xE0 and 1 or first < 0xF0 and 2 or first < 0xF5 and 3 or 0
    if more == 0 or not second or second < low or second > high then return false end
    local rest = text:sub(at + 2, at + more)
    if #rest < more - 1 or rest:find('[^\128-\191]') then return false end
    at = text:find('[\128-\255]', at + more + 1)
  end
  return true
end

-- The scores that are accepted begin neither with 0 nor with 255.
local function is_entry(entry)
  return #entry >= PLACE and entry:byte(1) > 0 and entry:byte(1) < 255
end

-- A member of the box or the morgue: its id and entry, or nil.
local function parts_of(member)
  if #member < 4 then return nil end
  local size = struct.unpack('>I4', member)
  local id, entry = member:sub(5, 4 + size), member:sub(5 + size)
  if #id == size and is_utf8(id) and is_entry(entry) then return id, entry end
end

-- Of the entries that an id was handed: those that are sound, whether that is all of them, and the progress of a started job.
local function handed_in(text)
  local progress
  if text:byte(1) == STARTED then
    local size = #text >= 5 and struct.unpack('>I4', text, 2) or math.huge
    if 5 + size > #text then return {}, false end
    progress, text = text:sub(6, 5 + size), text:sub(6 + size)
  end
  local kind, entries, at = text:byte(1), {}, 2
  if kind == kinds.single then
    local entry = text:sub(2)
    return is_entry(entry) and {entry} or {}, is_entry(entry), progress
  end
  local all = kind == SEVERAL
  while kind == SEVERAL and at <= #text do
    local size = at + 3 <= #text and struct.unpack('>I4', text, at) or math.huge
    if at + 3 + size > #text then return entries, false, progress end
    local entry = text:sub(at + 4, at + 3 + size)
    if is_entry(entry) then entries[#entries + 1] = entry else all = false end
    at = at + 4 + size
  end
  return entries, all and #entries > 0, progress
end

-- Of a record that is not of the box: the entries in it that are sound, and whether that is all of them.
local function entries_in(record)
  local kind = record:byte(1)
  if kind ~= kinds.few and kind ~= kinds.few_touched then
    local entry = kind == kinds.single and record:sub(2) or kind == kinds.touched and record:sub(8) or ''
    return is_entry(entry) and {entry} or {}, is_entry(entry)
  end
  local at = kind == kinds.few and 2 or 8
  if #record < at + 2 then return {}, false end
  local count, last = struct.unpack('>BI2', record, at)
  -- As handed over: there the last has its length, too.
  local entries, all = handed_in('m' .. record:sub(at + 3, last - 1) .. struct.pack('>I4', math.max(0, #record - last + 1)) .. record:sub(last))
  return entries, all and #entries > 1 and #entries == count
end

local function is_record(record)
  local kind = record:byte(1)
  if kind == SEVERAL or kind == STARTED then return true end
  local _, all = entries_in(record)
  return all
end

-- A record in flight: due_at, retry_count, and as above.
local function flown(record)
  if #record < 17 then return nil end
  local due_at, retry_count = struct.unpack('>dd', record)
  return due_at, retry_count, handed_in(record:sub(17))
end

-- A started job that waits: its id, and what it was handed; or nil.
local function started_in(member)
  if #member < 4 then return nil end
  local size = struct.unpack('>I4', member) - LONGEST_ID
  if size < 0 then return nil end
  local id = member:sub(5, 4 + size)
  if #id == size and is_utf8(id) then return id, member:sub(5 + size) end
end

-- The one value that was packed, if it is a table.
local function table_in(packed)
  local ok, value, more = pcall(cmsgpack.unpack, packed)
  if ok and type(value) == 'table' and more == nil then return value end
end

local function is_any(value, ...)
  for _, kind in ipairs({...}) do
    if type(value) == kind then return kind ~= 'string' or is_utf8(value) end
  end
  return false
end

local function is_number(value, least)
  return value == nil or is_any(value, 'number') and value >= least and value < math.huge
end

-- {text, ...}, of at least one; or, with `numbers`, {arrival number, retry_count, ...}.
local function is_list(list, numbers)
  if list == nil then return true end
  if type(list) ~= 'table' or #list == 0 or (numbers and #list % 2 == 1) then return false end
  for at, one in pairs(list) do
    if type(at) ~= 'number' or (numbers and not is_number(one, 0)) or (not numbers and not is_any(one, 'string')) then
      return false
    end
  end
  return true
end

-- Packed as a map, which an empty table does not show.
local function is_trouble(packed)
  local t, first = table_in(packed), packed:byte(1)
  if not t or not (first >= 0x80 and first <= 0x8F or first == 0xDE or first == 0xDF) then return false end
  for name in pairs(t) do
    if not is_any(name, 'string') then return false end
  end
  return is_any(t.group, 'nil', 'string') and is_list(t.crashes) and is_list(t.halvings) and is_list(t.retry_counts, true)
    and is_number(t.blocked_since, 0) and is_any(t.head, 'nil', 'string') and is_any(t.rest, 'nil', 'string') and is_number(t.upto, 0)
    and is_number(t.keep, 0) and not (t.rest and not t.upto) and is_number(t.chunk_limit, 1) and (t.chunk_limit or not t.halvings) and is_number(t.exit_count, 0)
    and is_any(t.at_risk, 'nil', 'boolean') and is_any(t.blamed, 'nil', 'boolean') and is_any(t.abandoned, 'nil', 'boolean')
    and is_any(t.put_off, 'nil', 'string')
end

local function is_group(packed)
  local g = table_in(packed)
  return g and type(g.left) == 'number' and type(g.ids) == 'table' and is_any(g.signature, 'nil', 'string')
    and (g.error == nil or type(g.error) == 'string') and is_any(g.systemic, 'nil', 'boolean')
end

local function are_failures(packed)
  local noted = table_in(packed)
  if not noted then return false end
  for name, one in pairs(noted) do
    if type(name) ~= 'number' or type(one) ~= 'table' then return false end
    if not (one[3] == nil or type(one[3]) == 'string') then return false end
    if not (type(one[1]) == 'number' and type(one[2]) == 'number') then return false end
  end
  return true
end

local function is_answer(packed)
  local a = table_in(packed)
  return a and a[1] == 'OK' and type(a[2]) == 'number' and type(a[3]) == 'string' and finite(a[3])
    and type(a[4]) == 'table'
end
