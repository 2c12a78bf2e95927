--! gives HANDED read_progress with_progress
-- The progress of a started job in its record (flight.lua), and where what the id is handed begins in one in flight.
local HANDED = 17

-- The progress that stands there, or nil, and where the payloads begin.
local function read_progress(record, at)
  if record:sub(at, at) ~= 'p' then return nil, at end
  local size = struct.unpack('>I4', record, at + 1)
  local progress = record:sub(at + 5, at + 4 + size)
  if #progress < size then error('DAMAGED progress') end
  return progress, at + 5 + size
end

-- The record of the same payloads, further on.
local function with_progress(record, progress)
  local _, at = read_progress(record, HANDED)
  return record:sub(1, HANDED - 1) .. 'p' .. struct.pack('>I4', #progress) .. progress .. record:sub(at)
end
