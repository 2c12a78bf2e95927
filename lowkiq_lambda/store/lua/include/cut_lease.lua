--! keys meta lease
--! needs shard held free_memory_first
--! gives cut_lease
-- For how many seconds the shard is held, once what no lease can be is cut; nil where the caller has to measure the
-- time first. `held_ttl` is what the last holder wrote. Without one the end was written by hand: the caller's `ttl` bounds it.
local function cut_lease(held_until, held_ttl, ttl)
  if now >= held_until and call('PTTL', lease) == -1 then error('DAMAGED lease: it has no end') end
  local seconds, longest = held_for(held_until), longest_held(held_ttl or ttl)
  if seconds <= longest then return seconds end
  -- Only the server's own clock can show it.
  if not measured then return nil end
  if not held_ttl then error('DAMAGED until: nobody has held the shard') end
  free_memory_first()
  call('HSET', meta, 'until', math.min(held_until, now + longest), 'now', latest_now)
  if call('PTTL', lease) > longest * 1000 then call('PEXPIRE', lease, math.ceil(longest * 1000)) end
  return longest
end
