--! keys due lines lanes served
--! needs sound sound_ids sound_meta shelf lanes serve wait
--! gives look_at_lanes
-- The lanes of tenants. All but what `served` notes follows from due.
local function line_of(id, at) return lane_prefix(lane_of(id)) .. time_bytes(at) .. id end

local function is_log(log)
  if log == nil then return true end
  if type(log) ~= 'table' or #log % 2 == 1 then return false end
  for at, one in pairs(log) do
    if type(at) ~= 'number' or not is_number(one, 0) then return false end
  end
  return true
end

local function is_note(packed)
  local known = table_in(packed)
  if not known or not is_log(known.log) then return false end
  for _, name in ipairs({'at', 'rests', 'paused', 'kept', 'begun'}) do
    if not is_number(known[name], 0) then return false end
  end
  return known.log or not (known.begun or known.rests or known.kept)
end

local function are_names(packed)
  local names = table_in(packed)
  for _, name in ipairs(names or {}) do
    if type(name) ~= 'string' then return false end
  end
  return names
end

-- One that cannot be read is forgotten: the rate of the lane begins anew, and a pause of it ends.
local function check_served(lane, packed)
  local is_sound = is_note
  if lane == BEGUN then is_sound = are_names end
  if not is_sound(packed) or (lane ~= BEGUN and not is_utf8(lane)) then
    take_away('served', served, lane, packed, 'the note is none of a lane')
  end
  if lane ~= BEGUN then set_served_from(lane) end
end

local function check_line(member, score)
  local size = #member >= 4 and struct.unpack('>I4', member) or #member
  local id = member:sub(13 + size)
  local at = is_utf8(id) and call('ZSCORE', due, id)
  if not at or line_of(id, tonumber(at)) ~= member then
    call('ZREM', lines, member)
    return note_repair('lines', at and id or '', 'the line was that of no id that waits')
  end
  if tonumber(score) == 0 then return end
  call('ZADD', lines, 0, member)
  note_repair('lines', id, 'the line had a score')
end

local function check_served_from(lane, score)
  set_served_from(lane)
  if not finite(score) then note_repair('lanes', lane, 'its time was ' .. score) end
end

local check_due = CHECKS.due
local function check_due_in_line(id, score)
  check_due(id, score)
  local at = call('ZSCORE', due, id)
  if not at or (call('ZSCORE', lines, line_of(id, tonumber(at))) and call('ZSCORE', lanes, lane_of(id))) then return end
  wait(id, at)
  note_repair('due', id, 'the id was not in the line of its lane')
end

-- Makes them parts of what is looked through: what making an id wait reads comes first, and the fair order follows from all the rest.
local function look_at_lanes(parts)
  for _, each in ipairs({{'lines', lines, 'zset'}, {'lanes', lanes, 'zset'}, {'served', served, 'hash'}}) do
    KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = each
  end
  table.insert(parts, 1, 'lines')
  table.insert(parts, 2, 'served')
  parts[#parts + 1] = 'lanes'
  CHECKS.served, CHECKS.lines, CHECKS.lanes, CHECKS.due = check_served, check_line, check_served_from, check_due_in_line
end
