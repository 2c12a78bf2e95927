--! needs records
--! gives cargo_records cargo_bytes base cargo is_full load moved_arrival moved moved_all
-- What one call carries: rows for the shards that their names belong to, as far as it may go.
-- A row is {kind, name, drop, packed}: `name` is an id, or another name within the shard, `drop` what the next call
-- gets once the row has been received, `packed` what receive.lua reads.
-- ARGV[5]  how many payloads and other records
-- ARGV[6]  how many bytes
-- ARGV[7]  what is added to arrival numbers, so that those of several shards that become one differ
local cargo_records, cargo_bytes, base, cargo = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), {}

local function is_full() return cargo_records < 1 or cargo_bytes < 1 end

local function load(kind, name, drop, row, records)
  local packed, n = cmsgpack.pack(row), #cargo
  cargo[n + 1], cargo[n + 2], cargo[n + 3], cargo[n + 4] = kind, name, drop, packed
  cargo_records, cargo_bytes = cargo_records - records, cargo_bytes - #packed
end

local function moved_arrival(arrival) return struct.pack('>I6', struct.unpack('>I6', arrival) + base) end

-- A place, or an entry.
local function moved(entry) return entry:sub(1, PLACE - 6) .. moved_arrival(entry:sub(PLACE - 5, PLACE)) .. entry:sub(PLACE + 1) end

local function moved_all(entries)
  local shifted = {}
  for i, entry in ipairs(entries) do shifted[i] = moved(entry) end
  return shifted
end
