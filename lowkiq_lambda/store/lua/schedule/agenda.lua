--! keys timetable
--! needs shard timetable exists
-- Returns the records of entries to a process that is about to fire them, and notes that they are declared.
-- An entry fires for no time before its times were first seen, or seen again after others had taken their place.
-- ARGV[4..]  name, digest of the times and id of each entry that the caller's code declares in this shard
-- Returns {'OK', {{name, floor, switch}, ...}, {{name, definition, digest, floor, since, switch}, ...}}: those of the call,
--   then all that were made at run time. Only times after the floor may fire; switch is 'off' or 'on', or '' if its
--   declaration decides. Or a refusal.
-- Seconds: AHEAD, by which a clock may go wrong unnoticed; FRESH, for which a note need not be renewed; REPLACED, after
-- which times that nobody declares have been replaced by others that somebody does; FORGOTTEN, the life of what nobody declares.
local AHEAD, FRESH, REPLACED, FORGOTTEN, MOST_KNOWN = 300, 300, 900, 30 * 86400, 4
local refused = refusal()
if refused then return refused end
if #ARGV == 3 and not exists(timetable) then return {'OK', {}, {}} end

local function switch_of(entry) return entry.off and 'off' or entry.switched and 'on' or '' end

local function is_ahead(at) return at and at > now + AHEAD end

-- A clock that was ahead has written these: nothing waits for them, and nothing fires for the past on their account.
local function healed(entry)
  local is_wrong = is_ahead(entry.last) or is_ahead(entry.on) or is_ahead(entry.since)
  if is_wrong then entry.last, entry.on, entry.since = nil, now, entry.since and now end
  for _, times in pairs(entry.known or {}) do
    if is_ahead(times[1]) or is_ahead(times[2]) then
      times[1], times[2], is_wrong = math.min(times[1], now), math.min(times[2], now), true
    end
  end
  return is_wrong
end

-- The newest stays, also where others have been seen by a clock that was a little ahead.
local function forget_oldest(known, newest)
  local count, oldest = 0, nil
  for digest, times in pairs(known) do
    count = count + 1
    if digest ~= newest and (not oldest or times[2] < known[oldest][2]) then oldest = digest end
  end
  if count > MOST_KNOWN then known[oldest] = nil end
end

-- Whether that is news.
local function recognise(entry, digest)
  local newest = seen_at(entry)
  entry.known = entry.known or {}
  local times = entry.known[digest]
  if not times or newest - times[2] > REPLACED then
    entry.known[digest] = {now, now}
    forget_oldest(entry.known, digest)
    return true
  end
  if now - times[2] < FRESH then return false end
  times[2] = now
  return true
end

local declared, made = {}, {}
for i = 4, #ARGV, 3 do
  local name, digest, id = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local entry = read_entry(name)
  local is_wrong, is_news, is_moved = healed(entry), recognise(entry, digest), not entry.definition and entry.id ~= id
  if is_moved then entry.id = id end
  if is_wrong or is_news or is_moved then write_entry(name, entry) end
  declared[#declared + 1] = {name, string.format('%.17g', floor_of(entry, digest)), switch_of(entry)}
end
local all = call('HGETALL', timetable)
for i = 1, #all, 2 do
  local name, entry = all[i], cmsgpack.unpack(all[i + 1])
  if entry.definition then
    if healed(entry) then write_entry(name, entry) end
    local floor, since = floor_of(entry, entry.digest), string.format('%.17g', entry.since)
    made[#made + 1] = {name, entry.definition, entry.digest, string.format('%.17g', floor), since, switch_of(entry)}
  elseif now - math.max(seen_at(entry), entry.last or 0, entry.off or 0, entry.on or 0) > FORGOTTEN then
    call('HDEL', timetable, name)
  end
end
return {'OK', declared, made}
