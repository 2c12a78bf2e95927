--! each due box since retry flight morgue meta lines
--! needs far work
--! with tenants kept_back
-- Shards in numbers, read only. Of one shard after the other.
-- ARGV[4]  '1' to take all shards together
-- ARGV[5]  Unix seconds, as the caller judges the server's time
-- Returns {JSON}, as a table of numbers costs much more, here and where it is read: for each shard, or once, a list of
--   ids waiting, of them ids that have failed, of them started jobs, ids in flight, ids in the morgue, the counters done,
--   retried, dead, trimmed, blocked, rejected, superseded, checkpointed, payloads, damaged, discarded, expired, cancelled, ids that are blocked, ids that are due, and those of them that a pause keeps, calls, milliseconds of these, of computing in them, and under a lease, the sum of the last arrival numbers modulo 2^52, then, null where there is none, of shards without a pause earliest
--   due, earliest since, and of those with jobs in flight {flight since, lease until, since when the time under it is not counted}; of each shard with a pause,
--   whether it is over or not, {earliest due, earliest since, flight since, lease until, until when}; the earliest due of ids
--   whose tenant rests, and of those whose tenant is paused, which no other due includes; of how many shards an operator
--   has limited the queue; and how many shards are held, and how many are free with work that may begin.
local together, FOREVER = ARGV[4] == '1', 253402300799
local waiting, failed, started, in_flight, in_morgue = 0, 0, 0, 0, 0
local done, retried, dead, rejected, checkpointed, payloads, damaged, discarded = 0, 0, 0, 0, 0, 0, 0, 0
local blocked, superseded, blocked_now, trimmed = 0, 0, 0, 0
local none = math.huge
local due_at, since_at, flights, pauses, rows = none, none, {}, {}, {}
local rests_at, tenants_paused_at, limited, expired, cancelled = none, none, 0, 0, 0
local calls, busy, computing, held, arrivals = 0, 0, 0, 0, 0
local shards_held, shards_ready = 0, 0
local moment_of_call, due_now, paused_due = tonumber(ARGV[5]), 0, 0

local function time(at)
  at = tonumber(at)
  if not (at > -none) then error('DAMAGED time') end
  return at < none and string.format('%.17g', at) or 'null'
end

local function moment(at)
  if not (math.abs(at) < none) then error('DAMAGED time') end
  return string.format('%.17g', at)
end

-- Of all shards since the last line.
local function add_line()
  rows[#rows + 1] = string.format('[%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.0f,%.0f,%.0f,%.0f,%.0f,%s,%s,[%s],[%s],%s,%s,%d,%d,%d]',
    waiting, failed, started, in_flight, in_morgue, done, retried, dead, trimmed, blocked, rejected, superseded,
    checkpointed, payloads, damaged, discarded, expired, cancelled, blocked_now, due_now, paused_due, calls, busy, computing, held, arrivals, time(due_at), time(since_at), table.concat(flights, ','), table.concat(pauses, ','),
    time(rests_at), time(tenants_paused_at), limited, shards_held, shards_ready
  )
  waiting, failed, started, in_flight, in_morgue = 0, 0, 0, 0, 0
  done, retried, dead, rejected, checkpointed, payloads, damaged, discarded = 0, 0, 0, 0, 0, 0, 0, 0
  blocked, superseded, blocked_now, trimmed = 0, 0, 0, 0
  due_at, since_at, flights, pauses = none, none, {}, {}
  rests_at, tenants_paused_at, limited, expired, cancelled = none, none, 0, 0, 0
  calls, busy, computing, held, arrivals, due_now, paused_due = 0, 0, 0, 0, 0, 0, 0
  shards_held, shards_ready = 0, 0
end

for _ in shards do
  local more_done, again, lost, ended, further, aside, flight_since, paused_until, held_until, had_started, heads, older, unkept, mark, dropped, late, unwanted, packed, acquired_at, arrival =
    unpack(call('HMGET', meta, 'done', 'retried', 'dead', 'rejected', 'checkpointed', 'damaged',
      'flight_since', 'paused_until', 'until', 'had_started', 'blocked', 'superseded', 'trimmed', 'limited', 'discarded', 'expired', 'cancelled',
      'work', 'acquired_at', 'arrival'))
  local handed, ended_calls, took, computed, under_lease, counted_until = work_of(packed)
  if mark then limited = limited + 1 end
  waiting = waiting + call('ZCARD', due)
  done, retried, dead = done + (more_done or 0), retried + (again or 0), dead + (lost or 0)
  rejected, checkpointed, payloads, damaged = rejected + (ended or 0), checkpointed + (further or 0), payloads + handed, damaged + (aside or 0)
  blocked, superseded, trimmed = blocked + (heads or 0), superseded + (older or 0), trimmed + (unkept or 0)
  discarded, expired = discarded + (dropped or 0), expired + (late or 0)
  calls, busy, computing, held = calls + ended_calls, busy + took, computing + computed, held + under_lease
  -- A sum of many could have more bits than a number.
  arrivals = (arrivals + (arrival or 0)) % 2 ^ 52
  cancelled = cancelled + (unwanted or 0)
  if heads then blocked_now = blocked_now + call('ZCOUNT', due, FAR, '+inf') end
  if had_started then started = started + call('ZLEXCOUNT', box, '[\128', '+') end
  local own_due, own_since, own_flight = call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or none, none, none
  -- Most shards have none of these, and a command costs more than what it reads.
  if call('EXISTS', since, retry, flight, morgue) > 0 then
    local claimed = call('HLEN', flight)
    failed, in_flight, in_morgue = failed + call('ZCARD', retry), in_flight + claimed, in_morgue + call('ZCARD', morgue)
    own_since = call('ZRANGE', since, 0, 0, 'WITHSCORES')[2] or none
    if claimed > 0 then own_flight = flight_since or none end
  end
  local is_paused = tonumber(paused_until or 0) > moment_of_call
  local ripe = tonumber(own_due) <= moment_of_call and call('ZCOUNT', due, '-inf', moment_of_call) or 0
  due_now = due_now + ripe
  if is_paused then paused_due = paused_due + ripe end
  if lines and not is_paused then
    local rests, paused, kept
    own_due, own_since, rests, paused, kept = kept_back(moment_of_call)
    rests_at, tenants_paused_at, paused_due = math.min(rests_at, rests), math.min(tenants_paused_at, paused), paused_due + kept
  end
  if tonumber(held_until or 0) > moment_of_call then
    shards_held = shards_held + 1
  elseif not is_paused and (tonumber(own_due) <= moment_of_call or own_flight ~= none) then
    shards_ready = shards_ready + 1
  end
  if paused_until then
    pauses[#pauses + 1] = string.format('[%s,%s,%s,%s,%s]',
      time(own_due), time(own_since), time(own_flight), moment(held_until or 0),
      time(math.min(tonumber(paused_until), FOREVER))
    )
  else
    due_at, since_at = math.min(due_at, own_due), math.min(since_at, own_since)
    if own_flight ~= none then
      flights[#flights + 1] = string.format('[%s,%s,%s]', moment(own_flight), moment(held_until or 0),
        moment(math.max(acquired_at or 0, counted_until)))
    end
  end
  if not (math.abs(done + retried + dead + trimmed + blocked + superseded + rejected + checkpointed + payloads + damaged + discarded + expired + cancelled + calls + busy + computing + held + arrivals) < none) then error('DAMAGED counter') end
  if not together then add_line() end
end
if together then add_line() end
return {'[' .. table.concat(rows, ',') .. ']'}
