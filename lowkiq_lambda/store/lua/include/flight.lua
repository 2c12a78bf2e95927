--! needs records
-- A record in flight: perform_in and retry_count (two doubles), then 's' place payload, or 'm' and for each
-- payload its length (4 bytes) and place payload.
local function flight_record(perform_in, retry_count, entries)
  local head = struct.pack('>dd', perform_in, retry_count)
  if #entries == 1 then return head .. 's' .. entries[1] end
  local parts = {head, 'm'}
  for _, entry in ipairs(entries) do
    parts[#parts + 1] = struct.pack('>I4', #entry)
    parts[#parts + 1] = entry
  end
  return table.concat(parts)
end

local function read_flight(record)
  local perform_in, retry_count = struct.unpack('>dd', record)
  if record:sub(17, 17) == 's' and #record >= 17 + PLACE then return perform_in, retry_count, {record:sub(18)} end
  local entries, at = {}, 18
  while at <= #record do
    local size = struct.unpack('>I4', record, at)
    entries[#entries + 1] = record:sub(at + 4, at + 3 + size)
    at = at + 4 + size
    if size < PLACE or #entries[#entries] < size then error('DAMAGED record in flight') end
  end
  if record:sub(17, 17) ~= 'm' or #entries == 0 then error('DAMAGED record in flight') end
  return perform_in, retry_count, entries
end
