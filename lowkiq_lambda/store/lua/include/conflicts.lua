--! keys flight trouble
--! needs records
--! rarely replacement
--! gives conflicts
-- Pushes that are stored only if their id has no work. Of a packed job: a byte of flags, as store/shard/chunks.py has them.
local UNLESS_WAITING, UNLESS_RUNNING, REPLACE, MOST_REPLACED = 1, 2, 4, 1000
-- Commands, with the Lua around them: of a look whether an id waits for no work, of a replacement, of what it replaces.
local LOOK, CHANGE, GOING, MOST_COST = 5, 12, 3, 2000
local conflicts, running, stored, changes, cost, is_dear = {}, nil, {}, {}, 0, false

-- Why such a push is not stored, a letter: the id waits, runs, waits with a cursor, or has more than can be replaced.
local WAITS, RUNS, HAS_CURSOR, TOO_MANY = 'w', 'r', 's', 'm'

local function has_no_work(id, record)
  if not (has_expiry or call('HEXISTS', trouble, id) == 1) then return false end
  cost = cost + LOOK
  return rarely().replacement.is_free(id, record)
end

-- Of the job at that position, which has these flags: the reason for which it is dropped; or nil, and whether it replaces what
-- waits. `record`: that of its id before this call.
function conflicts.of(flags, position, ids, record)
  -- The call is made again with fewer.
  if conflicts.are_dear(#ids) then return nil end
  local id, replaces = ids[position], bit.band(flags, REPLACE) ~= 0
  if not replaces and bit.band(flags, UNLESS_RUNNING) ~= 0 then
    running = running or call('HMGET', flight, unpack(ids))
    if running[position] then return RUNS end
  end
  if bit.band(flags, UNLESS_WAITING) == 0 or not (record or stored[id]) then return nil end
  if record and record:byte(1) == STARTED then return replaces and HAS_CURSOR or WAITS end
  local has_none = record and has_no_work(id, record)
  if not replaces then return (stored[id] or not has_none) and WAITS or nil end
  if has_none and not stored[id] then return nil end
  local count = record and rarely().replacement.count(id, record) or 0
  if count > MOST_REPLACED then return TOO_MANY end
  if record then cost = cost + CHANGE + GOING * count end
  return nil, true
end

-- The call puts a payload under the id, which `replaces` what waits there.
function conflicts.note(id, replaces)
  is_dear = is_dear or replaces and stored[id] or stored[id] == REPLACE
  stored[id] = replaces and REPLACE or true
end

-- A payload that takes the place of what waits.
function conflicts.replace(position, id, entry, record)
  if changes[1] and cost > MOST_COST then return end
  changes[#changes + 1] = {position, id, entry, rarely().replacement.read(id, record)}
end

-- Whether calls of fewer jobs should be made, of a call of so many: that cost less, and replace nothing that they put.
function conflicts.are_dear(count) return is_dear or cost > MOST_COST and count > 1 end

-- Adds {position, due time of the id, ...} of those that replaced others.
function conflicts.replace_all(merge, token, joined)
  if #changes > 0 then rarely().replacement.put_all(merge, token, changes, joined) end
end
