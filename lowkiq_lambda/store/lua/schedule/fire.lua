--! keys due jobs box retry flight meta
--! needs shard wait timetable earliest_due
--! with journalling journalling
--! rarely retry_counts
-- Decides one planned time of an entry, once and for all: its job is pushed, or the time is let go. A call that
-- comes again with this time, or with an earlier one, changes nothing.
-- ARGV[4]   name of the entry
-- ARGV[5]   digest of its times
-- ARGV[6]   planned time, Unix seconds
-- ARGV[7]   how many earlier planned times are let go with it, for the history
-- ARGV[8]   'push', or what is noted in place of a push; then the others are left out
-- ARGV[9]   merge
-- ARGV[10]  '1' to push nothing while the id waits or is in flight, else ''
-- ARGV[11]  the channel
-- ARGV[12]  what is said on it
-- ARGV[13]  id
-- ARGV[14]  job, packed as enqueue takes it, with score and perform_in
-- Returns {status, outcome, sooner, perform_in}. FIRED: outcome is 'pushed', 'merged', 'busy' or ARGV[8], sooner as
--   enqueue says it, perform_in the time of the job or ''. ALREADY: the time was decided before, or is none of those
--   that may fire. EARLY, OFF, GONE (the shard knows of no entry with these times): nothing is written. Or a refusal.
local name, digest, planned, let_go, outcome = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local merge, skips, channel, said, id, given = unpack(ARGV, 9)
local refused = refusal(merge, true)
if refused then return refused end
local arrival, max_len, opened = unpack(call('HMGET', meta, 'arrival', 'max_len', 'generation'))
-- As in enqueue: nobody knows that the queue is still declared as the caller has once seen it.
if not opened then return {'CLOSED'} end
arrival, max_len = tonumber(arrival or 0), tonumber(max_len or 0)
if not (arrival < 2 ^ 48 and max_len < 2 ^ 53) then error('DAMAGED meta') end

local entry = read_entry(name)
local floor = floor_of(entry, digest)
if not floor then return {'GONE', '', 0, ''} end
if planned <= floor then return {'ALREADY', '', 0, ''} end
if planned > due_by then return {'EARLY', '', 0, ''} end
if entry.off then return {'OFF', '', 0, ''} end

local record, failed
if outcome == 'push' then
  record = call('HGET', jobs, id)
  local is_busy = skips == '1' and (record or call('HEXISTS', flight, id) == 1)
  outcome = is_busy and 'busy' or record and 'merged' or 'pushed'
end
if outcome == 'merged' then
  -- What may fail does so before anything is written.
  call('ZCARD', box)
  failed = call('ZSCORE', retry, id) or false
  rarely().try_pushed(id, record, failed)
end

-- The first write must be one that a full Redis refuses: then nothing of the call is written.
entry.last = planned
note(entry, planned, outcome, let_go)
write_entry(name, entry)
if outcome ~= 'pushed' and outcome ~= 'merged' then return {'FIRED', outcome, 0, ''} end

-- Behind the flags: 8 bytes of the score, 8 of perform_in.
local score, perform_in, payload = given:sub(2, 9), struct.unpack('>d', given, 10), given:sub(18)
local place = score .. struct.pack('>I6', arrival + 1)
call('HSET', meta, 'arrival', arrival + 1, 'max_len', math.max(max_len, #payload), 'now', latest_now)
local sooner = 0
if has_journalling then trace('pushed', {id, place}) end
if record then
  rarely().put_pushed(merge, id, place .. payload, record, failed)
  local waits_until = call('ZSCORE', due, id)
  -- Somebody deleted the times.
  if not waits_until then wait(id, perform_in) end
  perform_in = tonumber(waits_until or perform_in)
else
  local head = earliest_due()
  call('HSET', jobs, id, 's' .. place .. payload)
  wait(id, perform_in)
  sooner = (head == '' or tonumber(earliest_due()) < tonumber(head)) and 1 or 0
end
if sooner == 1 and channel ~= '' and type(redis.pcall('PUBLISH', channel, said)) == 'number' then sooner = 2 end
if has_journalling then write_trace() end
return {'FIRED', outcome, sooner, string.format('%.17g', perform_in)}
