--! keys meta
--! gives now_text measured now latest_now due_by lacks_keys refusal NEAR
-- The beginning of each script that writes, or depends on the time.
-- ARGV[1]  version   of the caller's contract
-- ARGV[2]  now       Unix seconds
-- ARGV[3]  measured  '1' if now was measured for this very call
local version, now_text, measured = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local now = tonumber(now_text)
local latest_now, due_by = now_text, now

-- Clients know the server's time within half a round trip, a measured now too. A job that is due by the clock of one must be
-- due by the clock of the next, so due times are compared with the latest time that was seen, if that is so near.
local NEAR = 0.1

-- The refusal of a call that was not given the keys of what the shard has begun to use, or nil.
local function lacks_keys(used)
  for feature in used:gmatch('%a+') do
    if lacking[feature] then return {'IN_USE', used} end
  end
end

-- Returns why the call may not go on, or nil; fields of meta, from the seventh on those that the caller named, as a push
-- reads meta only once; and whether the shard is receiving. A measured now is the server's own clock, so it
-- wins over what was seen, but for what is near. A caller that merges says how: a shard was opened for one way. A shard
-- that is receiving (docs/resharding.md) takes pushes, and nothing else: `is_push`.
local function refusal(merges, is_push, ...)
  local fields = call('HMGET', meta, 'least_version', 'now', 'closed', 'merge', 'in_use', 'receiving', ...)
  local least, seen_at, closed, merge, used, receiving = unpack(fields)
  if least and version < tonumber(least) then return {'VERSION', least} end
  if closed or (merges and merge and merges ~= merge) then
    if not closed and not ({min = 1, max = 1, never = 1, latest = 1})[merge] then error('DAMAGED merge') end
    -- A shard that a move has closed answers the floors that later pushes must not fall below.
    return {'CLOSED', closed and closed ~= '1' and closed or nil}
  end
  if receiving and not is_push then return {'MOVING'} end
  local unknown = used and lacking and lacks_keys(used)
  if unknown then return unknown end
  local ahead = seen_at and tonumber(seen_at) - now or 0
  if ahead > 1 and not measured then return {'SKEW', seen_at} end
  if ahead > 0 and ahead <= NEAR then due_by = tonumber(seen_at) end
  if ahead > 0 and (ahead <= NEAR or not measured) then latest_now = seen_at end
  return nil, fields, receiving
end
