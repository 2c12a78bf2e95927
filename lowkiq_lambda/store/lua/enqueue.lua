--! include shard put
-- Adds payloads to the shard. A push that comes twice under one token is applied once.
-- ARGV[4] token of the push, [5] merge, [6..] per job: id, score ('' = now; 8 order-preserving bytes),
--   perform_in ('' = now), payload.
-- Returns {'OK', bell, now, {position, perform_in, ...}}: bell is 1 when the shard's earliest due time became
--   earlier; the list names the jobs that met their id waiting (positions from 0), with the time that holds.
--   Or a refusal: VERSION, CLOSED, SKEW.
local refused = refusal()
if refused then return refused end
local token, merge, HEAD, FIELDS = ARGV[4], ARGV[5], 5, 4
local answered = call('HGET', pushes_even, token) or call('HGET', pushes_odd, token)
if answered then return cmsgpack.unpack(answered) end

local arrival, last_score, max_len, generation =
  unpack(call('HMGET', meta, 'arrival', 'last_score', 'max_len', 'push_generation'))
arrival, max_len = tonumber(arrival or 0), tonumber(max_len or 0)
local default_score, defaulted = math.max(now, tonumber(last_score or now)), false
local packed = struct.pack('>d', default_score)
local default_bytes = string.char(packed:byte(1) + 128) .. packed:sub(2)

local count = (#ARGV - HEAD) / FIELDS
local ids = {}
for i = 1, count do ids[i] = ARGV[HEAD + 1 + (i - 1) * FIELDS] end
local waiting = call('HMGET', jobs, unpack(ids))
local records, times, again, first = {}, {}, {}, {}
local earliest = math.huge
for i = 1, count do
  local at = HEAD + 1 + (i - 1) * FIELDS
  local id, score, perform_in, payload = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if score == '' then score, defaulted = default_bytes, true end
  if #payload > max_len then max_len = #payload end
  local place = score .. struct.pack('>I6', arrival + i)
  if waiting[i] or first[id] then
    again[#again + 1] = {i - 1, id, place, payload}
  else
    first[id] = true
    if perform_in == '' then perform_in = now_text end
    local n = #records
    records[n + 1], records[n + 2] = id, 's' .. place .. payload
    times[n + 1], times[n + 2] = perform_in, id
    local t = tonumber(perform_in)
    if t < earliest then earliest = t end
  end
end

-- The first write must be one that a full Redis refuses: then nothing of the call is written.
call('HSET', meta, 'arrival', arrival + count, 'max_len', max_len,
  'last_score', defaulted and default_score or last_score or -1, 'now', latest_now)
local head = call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
if #records > 0 then
  call('HSET', jobs, unpack(records))
  call('ZADD', due, unpack(times))
end
local met = {}
for _, job in ipairs(again) do
  put(merge, job[2], job[3], job[4])
  met[#met + 1] = job[1]
  met[#met + 1] = call('ZSCORE', due, job[2])
end
local reply = {'OK', (not head or earliest < tonumber(head)) and #records > 0 and 1 or 0, now_text, met}

-- Tokens are kept for one to two minutes: two hashes take turns, and the older one goes as a whole.
local minute = math.floor(now / 60)
local stored = tonumber(generation or minute)
if minute > stored then
  call('UNLINK', minute % 2 == 0 and pushes_even or pushes_odd)
  if minute > stored + 1 then call('UNLINK', minute % 2 == 0 and pushes_odd or pushes_even) end
  stored = minute
end
call('HSET', stored % 2 == 0 and pushes_even or pushes_odd, token, cmsgpack.pack(reply))
if stored ~= tonumber(generation) then call('HSET', meta, 'push_generation', stored) end
return reply
