--! keys receipts rows timetable served
--! needs receive_entries
--! with tracking items
--! with tenants lanes serve
--! with marks mark_done
--! gives receive_receipts receive_row receive_entry receive_lane receive_mark
-- Takes in the records of a shard beside its jobs, as carry_beside.lua packs them; a second copy changes nothing.

local function receive_receipts(_, row)
  local given = {}
  for i = 1, #row, 2 do given[i], given[i + 1] = row[i + 1], row[i] end
  call('ZADD', receipts, 'GT', unpack(given))
end

local function receive_row(_, row)
  local field, packed = unpack(row)
  if #field == REF then
    receive_rows(row)
  elseif tonumber(packed) > tonumber(call('HGET', rows, field) or 0) then
    call('HSET', rows, field, packed)
  end
end

-- A time that was decided here meanwhile stays decided.
local function receive_entry(_, row)
  local name, packed = unpack(row)
  local there = call('HGET', timetable, name)
  local decided = there and cmsgpack.unpack(there).last or 0
  if not there or decided < (cmsgpack.unpack(packed).last or 0) then call('HSET', timetable, name, packed) end
end

-- What a dead holder had claimed may have begun, and is not in the log yet: only the next holder knows the rate, and does
-- that before it claims (serve.lua).
local function receive_begun(lane, known, begun)
  known.begun = math.max(known.begun or 0, begun)
  local packed = call('HGET', served, BEGUN)
  local names = packed and cmsgpack.unpack(packed) or {}
  for _, name in ipairs(names) do
    if name == lane then return end
  end
  names[#names + 1] = lane
  call('HSET', served, BEGUN, cmsgpack.pack(names))
end

local function receive_lane(_, row)
  local lane, packed = unpack(row)
  local known, come = read_lane(lane), cmsgpack.unpack(packed)
  local function latest(name)
    local at = math.max(known[name] or 0, come[name] or 0)
    known[name] = at > 0 and at or nil
  end
  for _, name in ipairs({'at', 'paused', 'rests', 'kept'}) do latest(name) end
  if #(come.log or {}) > #(known.log or {}) then known.log = come.log end
  if come.begun then receive_begun(lane, known, come.begun) end
  set_served_from(lane, known)
end

-- What was pushed here meanwhile with a smaller score is superseded.
local function receive_mark(_, row) mark_some({row[1]}, {row[2]}) end
