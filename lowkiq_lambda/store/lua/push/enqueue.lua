--! keys due jobs meta pushes_even pushes_odd debouncing
--! needs shard put_payloads
--! with debouncing debounce
--! with receipts receipts
--! with tracking new_items
--! with headers new_headers
--! with expiry new_expiries
--! with journalling journalling
--! with requests requests
--! with marks marks comes_before
--! with unique conflicts
--! with bounded bounded
--! rarely join_payloads payloads
-- Adds payloads to the shard. A push that comes twice under one token is applied once.
-- ARGV[4]    token of the push
-- ARGV[5]    merge
-- ARGV[6]    the channel, '' if the caller notifies
-- ARGV[7]    the message
-- ARGV[8..]  per job: its id, and in one text a byte of flags, with HAS_SCORE the score (8 order-preserving bytes,
--   which with IS_DEFAULT are of a time that counts unless it is ahead of now),
--   with HAS_PERFORM_IN the time (a double), else both are now, with HAS_REF what include/new_items.lua reads, with
--   HAS_RECEIPT what include/receipts.lua reads, with HAS_HEADERS what include/new_headers.lua reads, with
--   HAS_EXPIRY what include/new_expiries.lua reads, with HAS_MORE the byte that include/conflicts.lua reads, and the payload. In a queue that
--   debounces or is bounded one more at the end, which include/debounce.lua and include/bounded.lua read
-- Returns {'OK', sooner, time, {position, due_at, ...}} and, if there are any, {position, due_at, ...} of jobs that
--   were applied before and are passed over, again of those that were superseded, of those whose ids are paused, and of those
--   that were dropped as their ids had work, with the letter of the reason before each due_at: sooner as
--   put_payloads.lua has it; time is the due time of new jobs that were given none; the list has the jobs that met their
--   id waiting (positions from 0), with the due time of the id. Or {'DEAR', how many jobs
--   to send at a time}, or {'OVERFULL', how many ids wait}, and nothing is written, or a refusal.
-- Bits of the flags, as store/shard/pushing.py sets them.
local HAS_SCORE, HAS_PERFORM_IN, HAS_REF, HAS_RECEIPT, HAS_HEADERS, IS_DEFAULT, HAS_EXPIRY, HAS_MORE = 1, 2, 4, 8, 16, 32, 64, 128
-- A job that joins others costs up to 8 µs in their record, and up to 55 in the box or on its way there.
local MOST_JOINING, MOST_DEAR = 1000, 150
local token, merge, channel, message, HEAD = ARGV[4], ARGV[5], ARGV[6], ARGV[7], 7
-- Before any refusal: jobs that were applied here must not be pushed to another shard because this one was closed since.
local answered = call('HGET', pushes_even, token) or call('HGET', pushes_odd, token)
if answered then
  -- A push may be repeated for longer than tokens are kept, as no replica has it: it stays in the newer hash. Not in a
  -- new one, which would outlive a shard that a move has sealed.
  local newer = (tonumber(call('HGET', meta, 'push_turns') or 0) or 0) % 2 == 0 and pushes_even or pushes_odd
  if call('EXISTS', newer) == 1 then redis.pcall('HSETNX', newer, token, answered) end
  local reply = cmsgpack.unpack(answered)
  for part = 4, #reply do
    for i = 4, #reply[part], 2 do
      if reply[part][i] == '' then reply[part][i] = reply[part][i - 2] end
    end
  end
  return reply
end
local refused, fields, receiving =
  refusal(merge, true, 'generation', 'arrival', 'max_len', 'last_score', 'push_minute', 'push_turns')
if refused then
  -- As long as somebody may send to a shard that a move has closed, no other move opens it (move/prepare.lua).
  if refused[1] == 'CLOSED' and refused[2] then redis.pcall('HSET', meta, 'refused_at', now_text) end
  return refused
end

local generation, arrival, max_len, last_score, last_minute, turns = unpack(fields, 7)
-- Redis may have been flushed since the caller last read the declaration.
if not generation then return {'CLOSED'} end
arrival, max_len = tonumber(arrival or 0), tonumber(max_len or 0)
last_minute, turns = tonumber(last_minute or 0), tonumber(turns or 0)
local default_score, is_defaulted = math.max(now, tonumber(last_score or now)), false
-- Before anything is written. A script that raises an error has the shard repaired, and is called again.
local MOST = 2 ^ 53
if not (arrival < 2 ^ 48 and max_len < MOST and default_score < MOST and last_minute < MOST and turns < MOST) then
  error('DAMAGED meta')
end
local packed = struct.pack('>d', default_score)
local default_bytes = string.char(packed:byte(1) + 128) .. packed:sub(2)

local quiet_at = has_debouncing and quiet_time()
local quiet_text = has_debouncing and string.format('%.17g', quiet_at)
local default_due, default_due_text = quiet_at or now, quiet_text or now_text
local count, ids = math.floor((#ARGV - HEAD) / 2), {}
for i = 1, count do ids[i] = ARGV[HEAD + 2 * i - 1] end
local waiting = call('HMGET', jobs, unpack(ids))
-- `place_of`: where in `records` that of a new id is; less than 0 once a payload of it does not simply go behind the others.
local records, times, place_of, met, joining, repeated, superseded, dropped = {}, {}, {}, {}, {}, {}, {}, {}
local earliest, written = math.huge, 0
local marks, refs = has_marks and marks_of(ids), has_tracking and refs_with_rows(HEAD + 2)
-- No functions: two of them, for the parts of a job, made a push dearer by 3 %, as each local that a function reaches costs.
for i = 1, count do
  local id, packed_job = ids[i], ARGV[HEAD + 2 * i]
  local flags, at, score, planned_at = packed_job:byte(1), 2, default_bytes, nil
  -- A shard knows which jobs were pushed before only once it has received all of them.
  if receiving and bit.band(flags, HAS_REF + HAS_RECEIPT + HAS_MORE) ~= 0 then return {'MOVING'} end
  if flags == 0 then
    is_defaulted = true
  else
    if bit.band(flags, HAS_SCORE) ~= 0 then score, at = packed_job:sub(2, 9), 10 else is_defaulted = true end
    if bit.band(flags, IS_DEFAULT) ~= 0 then
      -- No later push may take less than this one does, and the caller's clock may be ahead.
      is_defaulted = true
      local bits = string.char(score:byte(1) % 128) .. score:sub(2)
      if struct.unpack('>d', bits) > default_score then score = default_bytes end
    end
    if bit.band(flags, HAS_PERFORM_IN) ~= 0 then planned_at, at = struct.unpack('>d', packed_job, at) end
  end
  local item, is_known, header, expiry
  if has_tracking and bit.band(flags, HAS_REF) ~= 0 then item, at, is_known = read_item(packed_job, at, refs) end
  if has_receipts and not is_known and bit.band(flags, HAS_RECEIPT) ~= 0 then is_known, at = has_receipt(packed_job, at) end
  if has_headers and not is_known and bit.band(flags, HAS_HEADERS) ~= 0 then header, at = read_header(packed_job, at) end
  if has_expiry and not is_known and bit.band(flags, HAS_EXPIRY) ~= 0 then expiry, at = read_expiry(packed_job, at) end
  local is_below = marks and marks[i] and not is_known and comes_before(score, marks[i])
  local conflict, replaces
  if has_unique and not is_known and bit.band(flags, HAS_MORE) ~= 0 then
    if not is_below then conflict, replaces = conflicts.of(packed_job:byte(at), i, ids, waiting[i]) end
    if conflict and has_receipts and bit.band(flags, HAS_RECEIPT) ~= 0 then drop_receipt() end
    at = at + 1
  end
  local passed_over = is_known and repeated or is_below and superseded or conflict and dropped
  local number, payload = struct.pack('>I6', arrival + i), packed_job:sub(at)
  if #payload > max_len then max_len = #payload end
  if item then note_item(item, id, not passed_over and number, is_below and 's') end
  if header and not passed_over then note_header(header, number) end
  if expiry and not passed_over then note_expiry(expiry, number) end
  if has_journalling and not passed_over then trace('pushed', {id, score .. number}) end
  if passed_over then
    passed_over[#passed_over + 1] = {i - 1, id, reason = conflict}
  else
    local place = place_of[id]
    if has_unique then conflicts.note(id, replaces) end
    if replaces and waiting[i] then
      conflicts.replace(i - 1, id, score .. number .. payload, waiting[i])
    elseif not place and not waiting[i] then
      if has_requests then
        local own = planned_at or default_due
        local held = tonumber(requested.held_back(id, own))
        if held ~= own then planned_at = held end
      end
      records[written + 1], records[written + 2] = id, 's' .. score .. number .. payload
      times[written + 1], times[written + 2] = planned_at or default_due_text, id
      written = written + 2
      place_of[id] = written
      if (planned_at or default_due) < earliest then earliest = planned_at or default_due end
    else
      local entry = score .. number .. payload
      local appended = place and place > 0 and not (has_marks or has_debouncing)
        and rarely().payloads.appended(merge, records[place], entry)
      if appended then
        local due_at = times[place - 1]
        records[place], met[#met + 1] = appended, i - 1
        -- A number would lose its fraction in a reply.
        met[#met + 1] = type(due_at) == 'number' and string.format('%.17g', due_at) or due_at
      else
        if place then place_of[id] = -math.abs(place) end
        joining[#joining + 1] = {i - 1, id, entry, waiting[i] or records[math.abs(place)], planned_at or false, false}
      end
    end
  end
end

-- Too many that cost much: the caller sends fewer at a time.
if has_unique and conflicts.are_dear(count) then return {'DEAR', math.ceil(count / 2)} end
if #joining > MOST_JOINING then return {'DEAR', MOST_JOINING} end
if #joining > 0 and rarely().check_joining(merge, joining) > MOST_DEAR then return {'DEAR', MOST_DEAR} end
if has_bounded and written > 0 then
  local room, waiting = room_left()
  if written / 2 > room then return room > 0 and {'DEAR', room} or {'OVERFULL', waiting} end
end
if has_debouncing then call('ZCARD', debouncing) end
-- The first write must be one that a full Redis refuses: then the call writes nothing.
call('HSET', meta, 'arrival', arrival + count, 'max_len', max_len,
  'last_score', is_defaulted and default_score or last_score or -1, 'now', latest_now)
if has_receipts then keep_receipts() end
if has_tracking then keep_items() end
if has_headers then keep_headers() end
if has_expiry then keep_expiries() end
if #superseded > 0 then call('HINCRBY', meta, 'superseded', #superseded) end
local sooner, joined = put_payloads(merge, records, times, earliest, joining, superseded, channel, message, quiet_text)
for i = 1, #met do joined[#joined + 1] = met[i] end
if has_unique then conflicts.replace_all(merge, token, joined) end
local reply = {'OK', sooner, default_due_text, joined}
local paused = has_requests and requested.paused(ids) or {}
local parts = {repeated, superseded, paused, dropped}
while #parts > 0 and #parts[#parts] == 0 do parts[#parts] = nil end
for part, some in ipairs(parts) do
  local due_times = {}
  for i, job in ipairs(some) do
    due_times[2 * i - 1], due_times[2 * i] = job[1], (job.reason or '') .. (call('ZSCORE', due, job[2]) or now_text)
  end
  reply[4 + part] = due_times
end
if has_debouncing then forget_debouncing() end
if has_journalling then write_trace(token) end

-- Tokens are kept for one to two minutes: two hashes take turns, and the older one goes as a whole. After a minute that
-- was ahead, as the server's clock was, the same hash goes on; one minute less is no more than a caller may misjudge.
local minute = math.floor(now / 60)
if minute > last_minute then
  turns = turns + 1
  call('UNLINK', turns % 2 == 0 and pushes_even or pushes_odd)
end
-- Most due times are those of one earlier push: what is the same as before takes one byte, and not twenty.
local kept = {'OK', sooner, default_due_text}
for part = 4, #reply do
  local due_times, last = {}, nil
  for i = 1, #reply[part], 2 do
    local due_at = reply[part][i + 1]
    due_times[i], due_times[i + 1], last = reply[part][i], due_at == last and '' or due_at, due_at
  end
  kept[part] = due_times
end
call('HSET', turns % 2 == 0 and pushes_even or pushes_odd, token, cmsgpack.pack(kept))
if minute > last_minute or minute < last_minute - 1 then
  call('HSET', meta, 'push_minute', minute, 'push_turns', turns)
end
return reply
