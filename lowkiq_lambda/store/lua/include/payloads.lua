--! needs records comes_before
--! gives payloads is_in_box entries_of record_of
-- Payloads that lie in the record of their id: one, or a few short ones. Such an id costs no member of the box and no field of
-- `seen`: equal payloads are found by looking at each.
-- A push and a claim copy the record as a whole, so it is kept short.
local payloads, MOST_BYTES_IN_RECORD, LENGTH = {most_in_record = 8}, 1024, 4

local function is_in_box(record) return record:byte(1) == SEVERAL or record:byte(1) == STARTED end

function payloads.later(a, b) return comes_before(a, b) and b or a end

function payloads.arrival_of(place) return place:sub(9, PLACE) end

-- Of two places of equal payloads the one that is kept, and the other.
function payloads.preferred(merge, a, b)
  if comes_before(a, b) == (merge == 'max') then return b, a end
  return a, b
end

-- Of a record whose payloads are not in the box: where the first entry begins, how many there are, and where the last begins.
-- The last is named in the record's head, so one more comes behind any number at the same cost.
function payloads.layout(record)
  local kind = record:byte(1)
  local touched = kind == kinds.touched or kind == kinds.few_touched
  if kind ~= kinds.few and kind ~= kinds.few_touched then
    local first = touched and 8 or 2
    if #record < first - 1 + PLACE or (first == 2 and kind ~= kinds.single) then error('DAMAGED waiting record') end
    return first, 1, first
  end
  local head = touched and 8 or 2
  if #record < head + 2 + LENGTH + 2 * PLACE then error('DAMAGED waiting record') end
  local count, last = struct.unpack('>BI2', record, head)
  if count < 2 or last < head + 3 + LENGTH + PLACE or last + PLACE - 1 > #record then error('DAMAGED waiting record') end
  return head + 3 + LENGTH, count, last
end

-- Of such a record {entry, ...} in order, and `touched`.
local function entries_of(record)
  local at, count, last = payloads.layout(record)
  local kind, entries = record:byte(1), {}
  local touched = (kind == kinds.touched or kind == kinds.few_touched) and record:sub(2, 7) or UNTOUCHED
  if count == 1 then return {record:sub(at)}, touched end
  for i = 1, count - 1 do
    if at >= last then error('DAMAGED waiting record') end
    local size = struct.unpack('>I4', record, at - LENGTH)
    entries[i] = record:sub(at, at + size - 1)
    if size < PLACE then error('DAMAGED waiting record') end
    at = at + size + (i < count - 1 and LENGTH or 0)
  end
  if at ~= last then error('DAMAGED waiting record') end
  entries[count] = record:sub(last)
  return entries, touched
end

-- The record that has these entries, or nil if they belong in the box.
local function record_of(entries, touched)
  local count = #entries
  if count == 1 then return (touched == UNTOUCHED and 's' or 't' .. touched) .. entries[1] end
  if count > payloads.most_in_record then return nil end
  local parts, size = {touched == UNTOUCHED and 'f' or 'g' .. touched, ''}, 0
  for i, entry in ipairs(entries) do
    if i < count then parts[#parts + 1] = struct.pack('>I4', #entry) end
    parts[#parts + 1], size = entry, size + #entry
  end
  local last = #parts[1] + 4 + size - #entries[count] + LENGTH * (count - 1)
  parts[2] = struct.pack('>BI2', count, last)
  return size <= MOST_BYTES_IN_RECORD and table.concat(parts) or nil
end

-- As comes_before, of places that have their 14 bytes, in a third of its time.
local function precedes(a, at, b)
  local first, second, third = struct.unpack('>I6I6I2', a, at)
  local other_first, other_second, other_third = struct.unpack('>I6I6I2', b)
  if first ~= other_first then return first < other_first end
  if second ~= other_second then return second < other_second end
  return third < other_third
end

-- The same of a record that gets one more behind all of its own; nil where it may belong elsewhere, or has an equal one.
function payloads.appended(merge, record, entry)
  local size = #record
  if size + #entry > MOST_BYTES_IN_RECORD then return nil end
  -- The usual record, in two thirds of the time.
  if size > PLACE and record:byte(1) == kinds.single then
    if not precedes(record, 2, entry) then return nil end
    if merge ~= 'never' and size == #entry + 1 and record:sub(PLACE + 2) == entry:sub(PLACE + 1) then return nil end
    return struct.pack('>c1BI2I4', 'f', 2, size + 8, size - 1) .. record:sub(2) .. entry
  end
  local first, count, last = payloads.layout(record)
  if count == payloads.most_in_record or not precedes(record, last, entry) then return nil end
  -- Bytes of a place or a length may look like the payload: then a closer look is taken elsewhere.
  if merge ~= 'never' and record:find(entry:sub(PLACE + 1), first + PLACE, true) then return nil end
  if count == 1 then
    return struct.pack('>c1c6BI2I4', 'g', record:sub(2, 7), 2, size + 8, size - 7) .. record:sub(8) .. entry
  end
  local head = first - LENGTH - 3
  return record:sub(1, head - 1) .. struct.pack('>BI2', count + 1, size + LENGTH + 1) .. record:sub(head + 3, last - 1)
    .. struct.pack('>I4', size - last + 1) .. record:sub(last) .. entry
end

-- The payloads of a record that `goes` is true of, and the record of the others, or nil if none is left.
function payloads.parted(record, goes)
  local entries, touched = entries_of(record)
  local gone, left = {}, {}
  for _, entry in ipairs(entries) do
    local list = goes(entry) and gone or left
    list[#list + 1] = entry
  end
  return gone, #left > 0 and record_of(left, touched) or nil
end

-- Unites a payload with these entries. Returns `touched`, and the places, gone and kept, of two that became one.
function payloads.join(merge, entries, touched, place, payload)
  local kept, gone = place, nil
  for i, entry in ipairs(entries) do
    if #entry == PLACE + #payload and entry:sub(PLACE + 1) == payload then
      local known = entry:sub(1, PLACE)
      if merge == 'never' then
        if known == place then return touched end
      else
        touched = payloads.later(touched, payloads.later(payloads.arrival_of(place), payloads.arrival_of(known)))
        kept, gone = payloads.preferred(merge, place, known)
        if kept == known then return touched, gone, kept end
        table.remove(entries, i)
        break
      end
    end
  end
  local entry, at = kept .. payload, #entries
  while at > 0 and comes_before(entry, entries[at]) do at = at - 1 end
  table.insert(entries, at + 1, entry)
  return touched, gone, gone and kept
end
