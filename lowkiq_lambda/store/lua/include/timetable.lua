--! keys timetable
--! needs shard
--! gives read_entry write_entry floor_of seen_at note
-- The entries of a shard, by their names: msgpack of `id`; `last`, the newest planned time that was decided;
-- `known`, {digest of a declaration in code = {since, seen}}; `off`, since when it is switched off; `on`, when it was
-- switched on again; `switched`, true once somebody switched it, which counts more than its declaration; `history`, {{planned, at, outcome, let go}, ...}, newest first, with how many earlier planned times
-- the decision let go, where it did. Of an entry that was made at run time also
-- `definition` (JSON), and the `digest` and `since` of its times.
local HISTORY = 10

local function read_entry(name)
  local packed = call('HGET', timetable, name)
  return packed and cmsgpack.unpack(packed) or {}
end

local function write_entry(name, entry) call('HSET', timetable, name, cmsgpack.pack(entry)) end

-- Only times after it may fire. Nil where these times are not those of the entry.
local function floor_of(entry, digest)
  local since = entry.digest == digest and entry.since or entry.known and entry.known[digest] and entry.known[digest][1]
  return since and math.max(since, entry.last or 0, entry.on or 0)
end

-- When it was last declared.
local function seen_at(entry)
  local newest = 0
  for _, times in pairs(entry.known or {}) do newest = math.max(newest, times[2]) end
  return newest
end

local function note(entry, planned, outcome, let_go)
  entry.history = entry.history or {}
  table.insert(entry.history, 1, {planned, now, outcome, let_go and let_go > 0 and let_go or nil})
  entry.history[HISTORY + 1] = nil
end
