--! keys errors trouble flight meta lanes
--! needs shard turn let_go lease earliest_due stop_request free_memory_first claim work_done
--! rarely claim_reply outcomes claim_beside
--! with tenants serve
--! with tracking items flown_arrivals end_items ended_tasks
--! with headers drop_beside
--! with expiry drop_beside
--! with journalling journalling
--! with marks mark_done
--! with runs keep_runs
--! with requests requests
-- Writes what became of the ids in flight, renews the lease, and makes the next claim or lets go.
-- ARGV[4]       nonce
-- ARGV[5]       token
-- ARGV[6]       number of the call
-- ARGV[7]       ttl
-- ARGV[8]       merge
-- ARGV[9]       limits of the claim, msgpack (include/claim.lua)
-- ARGV[10..12]  limits of the morgue: payloads, bytes, seconds
-- ARGV[13]      what next: 'claim', 'release', 'part' (ids that are not named stay in flight; otherwise they are done),
--   or 'more' (they stay, and more are claimed beside them)
-- ARGV[14]      pace
-- ARGV[15]      what was done since the last settling, as include/work.lua packs numbers: payloads that were performed, calls of the
--   handler that ended, the milliseconds that they took, and those of them that a processor worked
-- ARGV[16]      outcomes, msgpack: a list of {id, outcome, ...} as include/outcomes.lua reads them
-- ARGV[17..]    errors that they name by position; behind these, with 'more', the oldest due_at of what stays in
--   flight, or ''; and behind these, where the queue keeps runs, those that end (include/keep_runs.lua)
-- Returns {'OK', claim or '', earliest due or '', 'paused', 'limited', 'quiet' or ''} (no jobs after a claim: nothing is due, or
--   the holder is to come to an end, and the lease is let go), {'LOST'}, or a refusal. With 'more' the lease is kept;
--   the jobs are what is new in flight, or to a repeat all that is there; and the due time is when the next id could
--   be claimed beside it. Where items of tasks ended, {task, ...} comes next: tasks that have no open item left here; and
--   where the morgue had no room, {} or these, and how many payloads it lost. Where the shard has requests of ids (include/requests.lua)
--   {id, 'c' or 'p', ...} comes behind these two, of what is in flight, and {id, ...} of what this call has cancelled.
local refused = refusal()
if refused then return refused end
local nonce, token, n, ttl, merge = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local MORGUE_LIMITS, next_step, pace, packed_outcomes = 10, ARGV[13], ARGV[14], ARGV[16]

local verdict, held_until = turn(nonce, token, n)
if verdict == 'LOST' then return {'LOST'} end
if verdict == 'AGAIN' then
  -- The first of them may have met damage after it had counted itself, so the last of it is done again.
  local held = held_until > 0
  if held and next_step == 'release' then let_go() elseif held then hold(token, ttl, held_until) end
  local claimed_jobs = held and (next_step == 'claim' or next_step == 'more') and rarely().claim_again() or ''
  local next_due = next_step == 'more' and rarely().next_beside() or earliest_due()
  local reply = {'OK', claimed_jobs, next_due, stop_request(token)}
  if has_requests then requested.tell(reply, token, n) end
  return reply
end

local has_room = has_runs and room_for_runs()
free_memory_first()
local limits = cmsgpack.unpack(ARGV[9])
local outcomes = cmsgpack.unpack(packed_outcomes)
local trimmed, cancelled = 0, {}
if #outcomes > 0 then trimmed, cancelled = rarely().settle_named(merge, token, n, outcomes, MORGUE_LIMITS) end
if next_step ~= 'part' and next_step ~= 'more' then
  -- Everything that is still in flight was done.
  local left = call('HLEN', flight)
  if left > 0 then
    if has_tracking and is_tracked() then finish_items(arrivals_flown(call('HGETALL', flight)), 'd') end
    if call('EXISTS', errors, trouble) > 0 then rarely().clear(call('HKEYS', flight)) end
    if has_headers or has_expiry then drop_flown() end
    if has_marks then mark_done(call('HGETALL', flight)) end
    if has_requests then requested.forget_cancels(call('HKEYS', flight)) end
    call('DEL', flight)
    call('HINCRBY', meta, 'done', left)
    if has_journalling then trace('done', {}) end
  end
  if lanes then note_ended(limits.tenant_rate) end
end
local ended = has_tracking and ended_tasks() or trimmed > 0 and {} or nil
trimmed = trimmed > 0 and trimmed or nil
note_work(n, pace, ARGV[15])
if has_runs then keep_runs(has_room) end
if next_step == 'more' then
  local stopping = stop_request(token)
  if stopping ~= '' then limits.ids = 0 end
  local claimed_jobs, next_due = rarely().claim_beside(merge, limits, ARGV[has_runs and before_runs() or #ARGV])
  if has_journalling then write_trace(token, n) end
  hold(token, ttl, held_until)
  local reply = {'OK', claimed_jobs or '', next_due, stopping, ended, trimmed}
  if has_requests then requested.tell(reply, token, n, cancelled) end
  return reply
end
local claimed_jobs
if next_step == 'claim' and stop_request(token) == '' then claimed_jobs = claim(merge, limits) end
if has_journalling then write_trace(token, n) end
if claimed_jobs or next_step == 'part' then hold(token, ttl, held_until) else let_go() end
local reply = {'OK', claimed_jobs or '', claimed_jobs and '' or earliest_due(), claimed_jobs and '' or stop_request(token), ended, trimmed}
if has_requests then requested.tell(reply, token, n, cancelled) end
return reply
