--! keys due jobs flight meta
--! needs shard timetable put_payloads
--! with journalling journalling
--! with expiry expiries
--! with requests requests
--! rarely join_payloads
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
-- ARGV[12]  the message
-- ARGV[13]  id
-- ARGV[14]  job, packed as enqueue takes it, with score and due_at, and with an expiry or without
-- Returns {status, outcome, sooner, due_at}. FIRED: outcome is 'pushed', 'merged', 'busy', 'paused' or ARGV[8], sooner as
--   put_payloads.lua has it, due_at the time of the job or ''. ALREADY: the time was decided before, or is not one of
--   those that may fire. EARLY, OFF, GONE (the shard has no entry with these times): nothing is written. Or a refusal.
local name, digest, planned, let_go, outcome = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local merge, skips, channel, message, id, packed_job = unpack(ARGV, 9)
local refused, fields = refusal(merge, true, 'generation', 'arrival', 'max_len')
if refused then return refused end
-- Redis may have been flushed since the caller last read the declaration.
if not fields[7] then return {'CLOSED'} end
local arrival, max_len = tonumber(fields[8] or 0), tonumber(fields[9] or 0)
if not (arrival < 2 ^ 48 and max_len < 2 ^ 53) then error('DAMAGED meta') end

local entry = read_entry(name)
local floor = floor_of(entry, digest)
if not floor then return {'GONE', '', 0, ''} end
if planned <= floor then return {'ALREADY', '', 0, ''} end
if planned > due_by then return {'EARLY', '', 0, ''} end
if entry.off then return {'OFF', '', 0, ''} end

local records, times, joining, place, due_at, payload, expiry = {}, {}, {}, nil, math.huge, nil, nil
if outcome == 'push' then
  local record = call('HGET', jobs, id)
  -- After the flags: 8 bytes of the score, 8 of due_at.
  place, due_at = packed_job:sub(2, 9) .. struct.pack('>I6', arrival + 1), struct.unpack('>d', packed_job, 10)
  -- HAS_EXPIRY, as push/enqueue.lua has it.
  local expires = bit.band(packed_job:byte(1), 64) ~= 0
  expiry, payload = expires and packed_job:sub(18, 25), packed_job:sub(expires and 26 or 18)
  if has_requests and requested.pause_of(id) then
    outcome = 'paused'
  elseif skips == '1' and (record or call('HEXISTS', flight, id) == 1) then
    outcome = 'busy'
  elseif record then
    outcome, joining = 'merged', {{0, id, place .. payload, record, due_at, false}}
    rarely().check_joining(merge, joining)
  else
    outcome, records, times = 'pushed', {id, 's' .. place .. payload}, {due_at, id}
  end
end

-- The first write must be one that a full Redis refuses: then the call writes nothing.
entry.last = planned
note(entry, planned, outcome, let_go)
write_entry(name, entry)
if #records + #joining == 0 then return {'FIRED', outcome, 0, ''} end
call('HSET', meta, 'arrival', arrival + 1, 'max_len', math.max(max_len, #payload), 'now', latest_now)
if has_expiry and expiry then write_expiries({place:sub(9), expiry}) end
if has_journalling then trace('pushed', {id, place}) end
local sooner = put_payloads(merge, records, times, due_at, joining, {}, channel, message)
if has_journalling then write_trace() end
return {'FIRED', outcome, sooner, call('ZSCORE', due, id)}
