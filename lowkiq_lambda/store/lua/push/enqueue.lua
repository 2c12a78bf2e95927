--! keys due jobs box retry meta pushes_even pushes_odd lanes gathering
--! needs shard
--! with tenants lanes
--! with gathering gather
--! with receipts receipts
--! with tracking new_items
--! with headers new_headers
--! with journalling journalling
--! with marks marks comes_before
--! rarely retry_counts wait
-- Adds payloads to the shard. A push that comes twice under one token is applied once.
-- ARGV[4]    token of the push
-- ARGV[5]    merge
-- ARGV[6]    the channel, '' if the caller notifies
-- ARGV[7]    what is said on it
-- ARGV[8..]  per job: its id, and in one text a byte of flags, with HAS_SCORE the score (8 order-preserving bytes,
--   which with IS_DEFAULT are of a time that counts unless it is ahead of now),
--   with HAS_PERFORM_IN the time (a double), else both are now, with HAS_REF what include/new_items.lua reads, with
--   HAS_RECEIPT what include/receipts.lua reads, with HAS_HEADERS what include/new_headers.lua reads, and the payload. In
--   a queue that gathers one more at the end, which include/gather.lua reads
-- Returns {'OK', sooner, time, {position, perform_in, ...}} and, if there are any, {position, perform_in, ...} of jobs that
--   were applied before and are passed over, and again of those that were superseded: sooner is 0 unless the shard's earliest due time became
--   earlier, then 1, and 2 where the script has notified; time is that of new jobs that were given none; the list names
--   the jobs that met their id waiting (positions from 0), with the time that holds. Or a refusal.
-- Bits of the flags, as store/shard/pushing.py sets them.
local HAS_SCORE, HAS_PERFORM_IN, HAS_REF, HAS_RECEIPT, HAS_HEADERS, IS_DEFAULT = 1, 2, 4, 8, 16, 32
local token, merge, channel, said, HEAD = ARGV[4], ARGV[5], ARGV[6], ARGV[7], 7
-- Before any refusal: what was applied must not be pushed to another shard because this one was closed since.
local answered = call('HGET', pushes_even, token) or call('HGET', pushes_odd, token)
if answered then return cmsgpack.unpack(answered) end
local refused, receiving = refusal(merge, true)
if refused then
  -- As long as somebody may send to a shard that a move has closed, no other move opens it (move/prepare.lua).
  if refused[1] == 'CLOSED' and refused[2] then redis.pcall('HSET', meta, 'refused_at', now_text) end
  return refused
end

local arrival, last_score, max_len, last_minute, turns, opened =
  unpack(call('HMGET', meta, 'arrival', 'last_score', 'max_len', 'push_minute', 'push_turns', 'generation'))
-- Nobody knows that the queue is still declared as the caller has once seen it: it may have been flushed since.
if not opened then return {'CLOSED'} end
arrival, max_len = tonumber(arrival or 0), tonumber(max_len or 0)
last_minute, turns = tonumber(last_minute or 0), tonumber(turns or 0)
local default_score, defaulted = math.max(now, tonumber(last_score or now)), false
-- Before anything is written. A script that raises an error has the shard repaired, and is called again.
local MOST = 2 ^ 53
if not (arrival < 2 ^ 48 and max_len < MOST and default_score < MOST and last_minute < MOST and turns < MOST) then
  error('DAMAGED meta')
end
local function seconds_of(score)
  return (struct.unpack('>d', string.char(score:byte(1) % 128) .. score:sub(2)))
end
local packed = struct.pack('>d', default_score)
local default_bytes = string.char(packed:byte(1) + 128) .. packed:sub(2)

local count, fresh_text, fresh_at = math.floor((#ARGV - HEAD) / 2), now_text, now
if has_gathering then
  fresh_at = quiet_time()
  fresh_text = string.format('%.17g', fresh_at)
end
local ids = {}
for i = 1, count do ids[i] = ARGV[HEAD + 2 * i - 1] end
local waiting = call('HMGET', jobs, unpack(ids))
local records, times, again, first, repeated = {}, {}, {}, {}, {}
local earliest, written = math.huge, 0
local marks, superseded, below = has_marks and marks_of(ids), {}, 0
local known = has_tracking and refs_with_rows(HEAD + 2)
for i = 1, count do
  local id, given = ids[i], ARGV[HEAD + 2 * i]
  local flags, at, score, perform_in, due_at = given:byte(1), 2, default_bytes, fresh_text, fresh_at
  -- Whether it was pushed before, nobody can tell until all has come.
  if receiving and bit.band(flags, HAS_REF + HAS_RECEIPT) ~= 0 then return {'MOVING'} end
  if flags == 0 then
    defaulted = true
  else
    if bit.band(flags, HAS_SCORE) ~= 0 then score, at = given:sub(2, 9), 10 else defaulted = true end
    if bit.band(flags, IS_DEFAULT) ~= 0 then
      -- No later push may take less than this one does, and the caller's clock may be ahead.
      defaulted = true
      if seconds_of(score) > default_score then score = default_bytes end
    end
    if bit.band(flags, HAS_PERFORM_IN) ~= 0 then
      due_at, at = struct.unpack('>d', given, at), at + 8
      perform_in = due_at
    end
  end
  local item, is_known, header
  if has_tracking and bit.band(flags, HAS_REF) ~= 0 then item, at, is_known = read_item(given, at, known) end
  if has_receipts and not is_known and bit.band(flags, HAS_RECEIPT) ~= 0 then is_known, at = has_receipt(given, at) end
  if has_headers and not is_known and bit.band(flags, HAS_HEADERS) ~= 0 then header, at = read_header(given, at) end
  local is_below = marks and marks[i] and not is_known and comes_before(score, marks[i])
  if is_below then is_known, header, below = true, nil, below + 1 end
  local number, payload = struct.pack('>I6', arrival + i), given:sub(at)
  if #payload > max_len then max_len = #payload end
  if item then note_item(item, id, not is_known and number, is_below and 's') end
  if header then note_header(header, number) end
  if has_journalling and not is_known then trace('pushed', {id, score .. number}) end
  if is_known then
    local passed_over = is_below and superseded or repeated
    passed_over[#passed_over + 1] = {i - 1, id}
  elseif waiting[i] or first[id] then
    again[#again + 1] = {i - 1, id, score .. number .. payload, waiting[i]}
  else
    first[id] = true
    records[written + 1], records[written + 2] = id, 's' .. score .. number .. payload
    times[written + 1], times[written + 2] = perform_in, id
    written = written + 2
    if due_at < earliest then earliest = due_at end
  end
end

-- A push that fails is repaired and made again: it must not have been applied in part, as only merging would show that.
local failed = {}
if #again > 0 then call('ZCARD', box) end
if has_gathering then call('ZCARD', gathering) end
for _, job in ipairs(again) do
  local id, record = job[2], job[4]
  -- What waits is another record once the first of them is put to it.
  if failed[id] ~= nil then
    job[4] = nil
  else
    failed[id] = record and call('ZSCORE', retry, id) or false
    if record then rarely().try_pushed(id, record, failed[id]) end
  end
end

-- The first write must be one that a full Redis refuses: then nothing of the call is written.
call('HSET', meta, 'arrival', arrival + count, 'max_len', max_len,
  'last_score', defaulted and default_score or last_score or -1, 'now', latest_now)
if has_receipts then keep_receipts() end
if has_tracking then keep_items() end
if has_headers then keep_headers() end
local head = call('ZRANGE', lanes or due, 0, 0, 'WITHSCORES')[2]
if #records > 0 then
  call('HSET', jobs, unpack(records))
  if lanes then
    line_up(times)
    earliest = tonumber(call('ZRANGE', lanes, 0, 0, 'WITHSCORES')[2])
  end
  call('ZADD', due, unpack(times))
end
if has_gathering then begin_gathering(times, fresh_text) end
local met = {}
for _, job in ipairs(again) do
  local id, record = job[2], job[4] or nil
  local is_older = rarely().put_pushed(merge, id, job[3], record, failed[id])
  if is_older then superseded[#superseded + 1] = job else met[#met + 1] = job[1] end
  local perform_in = call('ZSCORE', due, id)
  -- Somebody deleted the times.
  if not perform_in then rarely().wait(id, now_text) end
  if has_gathering and perform_in and not failed[id] and not is_older then
    -- A job with a time of its own puts nothing off.
    local is_planned = bit.band(ARGV[HEAD + 2 * job[1] + 2]:byte(1), HAS_PERFORM_IN) ~= 0
    local later = not is_planned and put_off(id, perform_in)
    if later then
      rarely().wait(id, later)
      perform_in, earliest = later, math.min(earliest, tonumber(later))
    end
  end
  if not is_older then met[#met + 1] = perform_in or now_text end
end
if below > 0 then call('HINCRBY', meta, 'superseded', below) end
local sooner = earliest < tonumber(head or math.huge) and 1 or 0
-- That a server allows no message from a script must not undo the push.
if sooner == 1 and channel ~= '' and type(redis.pcall('PUBLISH', channel, said)) == 'number' then sooner = 2 end
local reply = {'OK', sooner, fresh_text, met}
local function with_times(passed_over)
  local told = {}
  for i, job in ipairs(passed_over) do
    told[2 * i - 1], told[2 * i] = job[1], call('ZSCORE', due, job[2]) or now_text
  end
  return told
end
if #repeated > 0 or #superseded > 0 then reply[5] = with_times(repeated) end
if #superseded > 0 then reply[6] = with_times(superseded) end
if has_gathering then forget_gathering() end
if has_journalling then write_trace(token) end

-- Tokens are kept for one to two minutes: two hashes take turns, and the older one goes as a whole. After a minute that
-- was ahead, as the server's clock was, the same hash goes on; one minute less is no more than a caller may misjudge.
local minute = math.floor(now / 60)
if minute > last_minute then
  turns = turns + 1
  call('UNLINK', turns % 2 == 0 and pushes_even or pushes_odd)
end
call('HSET', turns % 2 == 0 and pushes_even or pushes_odd, token, cmsgpack.pack(reply))
if minute > last_minute or minute < last_minute - 1 then
  call('HSET', meta, 'push_minute', minute, 'push_turns', turns)
end
return reply
