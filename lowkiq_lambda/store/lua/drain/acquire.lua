--! keys suspects flight meta lease lanes
--! needs shard exists cut_lease free_memory_first earliest_due claim lease let_go limited
--! rarely claim_reply recover
--! with tenants serve
--! with journalling journalling
-- Takes the shard's lease if it is free and there is work, recovers the jobs of a dead holder, and claims what is due.
-- ARGV[4]       nonce
-- ARGV[5]       owner
-- ARGV[6]       ttl
-- ARGV[7]       merge
-- ARGV[8]       limits of the claim, msgpack (include/claim.lua)
-- ARGV[9..11]   limits of the morgue: payloads, bytes, seconds
-- ARGV[12]      error text of a job that crashed for the last time
-- ARGV[13]      what becomes of its id, unless the id goes on: 'block', 'drop' or 'latest'
-- Returns {'OK', token, recovered, {id, entry, ...} dead, pace and, behind an @, from when on one counts, claim or ''} and, if anything was
--   recovered, the owner that left it and the ids that the log names, and how many payloads the morgue had no room for; {'HELD', until}; {'PAUSED', until};
--   {'EMPTY', earliest due or ''}; {'LIMITED'} where the visit has to ask its queue for a permit first; {'STALE'} for a nonce that has gone on since; or a refusal.
local refused = refusal(ARGV[7])
if refused then return refused end
local nonce, owner, ttl, merge, MORGUE_LIMITS = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7], 9
local crashed, dead_head = ARGV[12], ARGV[13]

local last_token, holder, n, held_until, held_ttl, paused_until, pace, abandoned, limited, still_until, timing_from =
  unpack(call('HMGET', meta, 'token', 'nonce', 'call', 'until', 'ttl', 'paused_until', 'pace', 'abandoned', 'limited',
    'still_until', 'timing_from'))
if timing_from then pace = (pace or '') .. '@' .. timing_from end
held_until = tonumber(held_until or 0)
if held_until ~= held_until then error('DAMAGED until') end
if holder == nonce then
  if n ~= '0' then return {'STALE'} end
  local noted = call('HGET', meta, 'recovery')
  local recovered, dead, left_by, named = unpack(noted and cmsgpack.unpack(noted) or {0, {}})
  -- A call that met damage half-way has written its nonce, and does not hold the shard.
  return {'OK', last_token, recovered, dead, pace or '', held_until > now and rarely().claim_again() or '', left_by, named}
end
if paused_until and tonumber(paused_until) > now then return {'PAUSED', paused_until} end
if still_until and tonumber(still_until) > now then return {'PAUSED', still_until} end
if now < held_until or exists(lease) then
  local seconds = cut_lease(held_until, held_ttl, ttl)
  if not seconds then return {'SKEW', string.format('%.6f', held_until)} end
  return {'HELD', string.format('%.6f', now + seconds)}
end
local earliest, left = earliest_due(), exists(flight)
if not (left or (earliest ~= '' and tonumber(earliest) <= due_by) or exists(suspects)) then
  return {'EMPTY', earliest}
end
if lacks_permit(limited, nonce) then return {'LIMITED'} end

local left_by = left and (call('HGET', meta, 'owner') or '') or nil
local recovered, dead, named, trimmed = 0, {}, nil, nil
if left then
  free_memory_first()
  -- Before the new holder is written: after damage all of this is done again, under the nonce of the dead holder.
  recovered, dead, named, trimmed = rarely().recover(merge, MORGUE_LIMITS, crashed, abandoned, holder, dead_head)
end
-- Redis lets a script write when memory is full only after a command that frees: this is the first, if none was.
call('HDEL', meta, 'recovery', 'abandoned')
local token = string.format('%.0f', math.max(tonumber(last_token or 0) + 1, math.floor(now * 1000000)))
call('HSET', meta, 'token', token, 'nonce', nonce, 'call', 0, 'owner', owner, 'acquired_at', now,
  'ttl', ttl)
if left then call('HSET', meta, 'recovery', cmsgpack.pack({recovered, dead, left_by, named})) end
local limits = cmsgpack.unpack(ARGV[8])
if lanes then note_ended(limits.tenant_rate) end
local claimed_jobs = claim(merge, limits)
if claimed_jobs then hold(token, ttl, held_until) else let_go() end
if has_journalling then write_trace(token, 0) end
return {'OK', token, recovered, dead, pace or '', claimed_jobs or '', left_by, named, trimmed}
