--! keys due lines lanes served
--! needs shard
--! gives lane_of lane_prefix time_bytes read_lane set_served_from line_up
-- The fair order of tenants. The part of an id before its first colon is its lane, or ''.
-- lines   the ids of due by lane: members are the length of the lane (4 bytes), lane, due_at (8 bytes), id
-- lanes   lane -> from when on it is served: the later of its first due_at and of what `served` says. A lane without ids is there
--         until it has nothing to remember
-- served  lane -> msgpack of `at`, when it was served last; `paused`, until when an operator has stopped it;
--         and with a rate `log`, what has begun (spend.lua), until when that counts, `kept`, when the next may begin,
--         `rests`, and how much of it was claimed and is not in the log yet, `begun`
local function lane_of(id)
  local colon = id:find(':', 1, true)
  return colon and id:sub(1, colon - 1) or ''
end

local function lane_prefix(lane) return struct.pack('>I4', #lane) .. lane end

-- Of times that are not negative the byte order is that of the numbers.
local function time_bytes(at) return (struct.pack('>d', math.max(0, at))) end

local function read_lane(lane)
  local packed = call('HGET', served, lane)
  return packed and cmsgpack.unpack(packed) or {}
end

-- `known`: what `served` is to say of it from now on, or nil.
local function set_served_from(lane, known)
  local prefix, changed = lane_prefix(lane), known ~= nil
  known = known or read_lane(lane)
  local first = call('ZRANGE', lines, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
  local rests = math.max(known.rests or 0, known.paused or 0)
  if first then
    -- When it was served last says only behind whom it comes: a clock that is set back must not make it wait.
    call('ZADD', lanes, math.max(struct.unpack('>d', first, #prefix + 1), rests, math.min(due_by, known.at or 0)), lane)
  else
    local last = math.max(rests, known.kept or 0)
    if last <= now and not known.begun then
      call('ZREM', lanes, lane)
      call('HDEL', served, lane)
      return
    end
    call('ZADD', lanes, last, lane)
  end
  if changed then call('HSET', served, lane, cmsgpack.pack(known)) end
end

-- Before these are written to due: {time, id, ...}, as ZADD takes them.
local function line_up(times)
  local ids, gone, added, met = {}, {}, {}, {}
  for i = 2, #times, 2 do ids[i / 2] = times[i] end
  local before = call('ZMSCORE', due, unpack(ids))
  for i, id in ipairs(ids) do
    local lane = lane_of(id)
    local prefix = lane_prefix(lane)
    met[lane] = true
    if before[i] then gone[#gone + 1] = prefix .. time_bytes(tonumber(before[i])) .. id end
    added[2 * i - 1], added[2 * i] = 0, prefix .. time_bytes(tonumber(times[2 * i - 1])) .. id
  end
  if #gone > 0 then call('ZREM', lines, unpack(gone)) end
  call('ZADD', lines, unpack(added))
  for lane in pairs(met) do set_served_from(lane) end
end
