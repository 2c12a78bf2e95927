--! keys limits wait_list
--! needs queue set_limits permits spend
-- The limits of a queue, its permits, and the shards that wait for one, read only. What the code of the last visit declares
-- counts for a while, not what the caller declares: it may be of another release, or have other settings.
-- ARGV[4]  most permits that code declares, or ''
-- ARGV[5]  ids that may begin in any ARGV[6] seconds, as code declares it, or ''
-- Returns {'OK', now, most permits or '', ids or '', seconds or '', '1' where an operator has set any of that, else '',
--   {{shard, until, 1 for an offer, else 0}, ...}, {shard on the wait list, ...}, ids left or '', when another id may begin or '',
--   until when the last id may begin, if that used up the rate, else when the rate last let no id begin, or ''};
--   or {'SKEW', time}.
local refused = skew()
if refused then return refused end
local function text(number) return string.format('%.17g', number) end
local KNOWN_FOR = 60
local found = call('HMGET', limits, 'now', 'declared')
local is_read, declared = pcall(cmsgpack.unpack, found[2] or '')
local is_one = found[2] and is_read and type(declared) == 'table' and #declared == 3
  and queue_now - (tonumber(found[1]) or 0) < math.max(KNOWN_FOR, tonumber(declared[3]) or 0)
local most, limit, per = limits_that_count(unpack(is_one and declared or {ARGV[4], ARGV[5], ARGV[6]}))
local taken, offered = {}, 0
for _, permit in pairs((permits_now())) do
  if permit.offer then offered = offered + 1 end
  taken[#taken + 1] = {tostring(permit.shard), text(permit.till), permit.offer and 1 or 0}
end
local left, next_at, last = '', '', ''
if limit then
  local packed = call('HGET', limits, 'log')
  local is_sound, log = pcall(cmsgpack.unpack, packed or cmsgpack.pack({}))
  if not is_sound or type(log) ~= 'table' then log = {queue_now, limit} end
  for i = 1, #log, 2 do log[i] = log[i] - ahead end
  local newest, begun = log[#log - 1], 0
  for i = 1, #log, 2 do begun = begun + (log[i] > newest - per and log[i + 1] or 0) end
  last = begun >= limit and text(newest) or call('HGET', limits, 'rejected') or ''
  local ids = left_of(log, limit, per, queue_now)
  left = math.max(0, ids - offered)
  next_at = text(ids < 1 and free_at(log, ids, per) or queue_now)
end
return {
  'OK', text(queue_now), most < math.huge and text(most) or '', limit and text(limit) or '', limit and text(per) or '',
  limits_set() and '1' or '', taken, call('ZRANGE', wait_list, 0, -1), left, next_at, last,
}
