--! keys flight meta lease
--! needs shard exists held earliest_due free_memory_first
-- Notes that a process is about to start a drain of the shard, if it needs one and no other process is about to.
-- The note counts for the window, but ends when a holder takes the lease: then the token has grown.
-- ARGV[4]  nonce
-- ARGV[5]  window in seconds
-- Returns {'WOKEN'}, to a repeat too; {'HELD'}; {'PAUSED'}; {'EMPTY'}: nothing is due; {'AWAKE'}: an earlier wake
--   still counts; or a refusal.
local refused = refusal()
if refused then return refused end
local nonce, window = ARGV[4], tonumber(ARGV[5])

local token, held_until, held_ttl, paused_until, woken_by, woken_until, woken_token, still_until =
  unpack(call('HMGET', meta, 'token', 'until', 'ttl', 'paused_until', 'woken_by', 'woken_until', 'woken_token',
    'still_until'))
token = token or ''
if woken_by == nonce then return {'WOKEN'} end
held_until = tonumber(held_until or 0)
if (now < held_until or exists(lease)) and held_for(held_until) <= longest_held(held_ttl or 0) then return {'HELD'} end
if math.max(tonumber(paused_until or 0), tonumber(still_until or 0)) > now then return {'PAUSED'} end
local earliest = earliest_due()
if not ((earliest ~= '' and tonumber(earliest) <= due_by) or exists(flight)) then return {'EMPTY'} end
if woken_until and now < tonumber(woken_until) and woken_token == token then return {'AWAKE'} end

free_memory_first()
call('HSET', meta, 'woken_by', nonce, 'woken_until', now + window, 'woken_token', token, 'now', latest_now)
return {'WOKEN'}
