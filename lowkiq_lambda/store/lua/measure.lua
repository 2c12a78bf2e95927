--! keys due since retry flight morgue meta
-- Shards in numbers, read only. KEYS: those of one shard after the other. ARGV[4]: '1' to take all shards together.
-- Returns {JSON}, as a table of numbers costs much more, here and where it is read: for each shard, or once, a list of
--   ids waiting, of them ids that have failed, ids in flight, ids in the morgue, the counters processed, retried, dead,
--   payloads, then, null where there is none, earliest due, earliest since, and of shards with jobs in flight {flight
--   since, lease until}, and until when shards are paused.
local call = redis.call
local OF_A_SHARD, together = 6, ARGV[4] == '1'
local waiting, failed, flying, buried, processed, retried, dead, payloads = 0, 0, 0, 0, 0, 0, 0, 0
local none = math.huge
local due_at, since_at, flights, pauses, lines = none, none, {}, {}, {}

local function time(at) return tonumber(at) < none and string.format('%.17g', at) or 'null' end

for at = 1, #KEYS, OF_A_SHARD do
  local due, since, retry, flight, morgue, meta = unpack(KEYS, at, at + OF_A_SHARD - 1)
  local done, again, lost, handed, flight_since, paused_until, held_until =
    unpack(call('HMGET', meta, 'processed', 'retried', 'dead', 'payloads', 'flight_since', 'paused_until', 'until'))
  waiting = waiting + call('ZCARD', due)
  processed, retried, dead = processed + (done or 0), retried + (again or 0), dead + (lost or 0)
  payloads = payloads + (handed or 0)
  due_at = math.min(due_at, call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or none)
  -- Most shards have none of these, and a command costs more than what it reads.
  if call('EXISTS', since, retry, flight, morgue) > 0 then
    local in_flight = call('HLEN', flight)
    failed, flying, buried = failed + call('ZCARD', retry), flying + in_flight, buried + call('ZCARD', morgue)
    since_at = math.min(since_at, call('ZRANGE', since, 0, 0, 'WITHSCORES')[2] or none)
    if in_flight > 0 and flight_since then
      flights[#flights + 1] = string.format('[%s,%s]', time(flight_since), time(held_until or 0))
    end
  end
  if paused_until then pauses[#pauses + 1] = paused_until end

  if not together or at + OF_A_SHARD > #KEYS then
    lines[#lines + 1] = string.format('[%d,%d,%d,%d,%d,%d,%d,%d,%s,%s,[%s],[%s]]',
      waiting, failed, flying, buried, processed, retried, dead, payloads,
      time(due_at), time(since_at), table.concat(flights, ','), table.concat(pauses, ',')
    )
    waiting, failed, flying, buried, processed, retried, dead, payloads = 0, 0, 0, 0, 0, 0, 0, 0
    due_at, since_at, flights, pauses = none, none, {}, {}
  end
end
return {'[' .. table.concat(lines, ',') .. ']'}
