--! needs records progress
--! gives handed flight_record read_handed read_flight
-- A record in flight: due_at and retry_count (two doubles), then what the id is handed: 's' place payload, or 'm' and
-- for each payload its length (4 bytes) and place payload. Of a started job 'p', the length of its progress (4 bytes)
-- and the progress come before that. The progress is its holder's: nothing here reads it.
local function handed(entries, progress)
  local parts = progress and {'p', struct.pack('>I4', #progress), progress} or {}
  if #entries == 1 then
    parts[#parts + 1] = 's'
    parts[#parts + 1] = entries[1]
    return table.concat(parts)
  end
  parts[#parts + 1] = 'm'
  for _, entry in ipairs(entries) do
    parts[#parts + 1] = struct.pack('>I4', #entry)
    parts[#parts + 1] = entry
  end
  return table.concat(parts)
end

local function flight_record(due_at, retry_count, entries, progress)
  return struct.pack('>dd', due_at, retry_count) .. handed(entries, progress)
end

-- {entry, ...}, and the progress or nil.
local function read_handed(record, from)
  local progress, at = read_progress(record, from)
  if record:sub(at, at) == 's' and #record >= at + PLACE then return {record:sub(at + 1)}, progress end
  local entries, kind = {}, record:sub(at, at)
  at = at + 1
  while at <= #record do
    local size = struct.unpack('>I4', record, at)
    entries[#entries + 1] = record:sub(at + 4, at + 3 + size)
    at = at + 4 + size
    if size < PLACE or #entries[#entries] < size then error('DAMAGED record in flight') end
  end
  if kind ~= 'm' or #entries == 0 then error('DAMAGED record in flight') end
  return entries, progress
end

local function read_flight(record)
  local due_at, retry_count = struct.unpack('>dd', record)
  return due_at, retry_count, read_handed(record, HANDED)
end
