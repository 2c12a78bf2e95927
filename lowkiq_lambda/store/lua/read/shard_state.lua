--! each due since suspects flight meta lease lanes
-- The work that there is in the shards, read only.
-- ARGV[4]  word  'work': of a shard without jobs the caller need not know more, while the queue has the same declaration
-- Returns for each {
--   {earliest due (or when a tenant is served) or '', earliest since or '', flight since or '', lease until, milliseconds left on the lease key,
--     paused until or ''},
--   ids in flight, the latest now that was seen or '', TTL of the lease or '', 1 if the shard is open, 0 if it is not, -1 if
--   nobody may have its jobs, as it is closed or they have not all come (docs/resharding.md),
--   1 if ids are in flight or suspect, else 0, and, if it uses any features that its queue does not declare, these}.
-- With 'work': {} for a shard without jobs, and {} for all of them if none has any.
local sparse = false
if ARGV[4] == 'work' then
  local homes, metas = {}, {}
  for _ in shards do
    homes[#homes + 1] = lanes or due
    homes[#homes + 1] = flight
    metas[#metas + 1] = meta
  end
  -- A job that waits or runs lies in one of its two homes, so one command tells whether there is any in all of the shards.
  local found = call('EXISTS', unpack(homes))
  -- A shard that lost its meta is to be opened again (docs/lease.md).
  sparse = 2 * found <= #metas and call('EXISTS', unpack(metas)) == #metas
  if sparse and found == 0 then return {} end
end

local states = {}
for _ in shards do
  if sparse and call('EXISTS', lanes or due, flight) == 0 then
    states[#states + 1] = {}
  else
    -- Most shards have none of these, and a command costs more than what it reads.
    local rare = call('EXISTS', since, suspects, flight) > 0
    local in_flight = rare and call('HLEN', flight) or 0
    local flight_since, held_until, paused_until, seen_at, ttl, closed, opened, in_use, receiving, still_until =
      unpack(call('HMGET', meta, 'flight_since', 'until', 'paused_until', 'now', 'ttl', 'closed', 'generation', 'in_use',
        'receiving', 'still_until'))
    if still_until and tonumber(still_until) > tonumber(paused_until or 0) then paused_until = still_until end
    states[#states + 1] = {
      {
        call('ZRANGE', lanes or due, 0, 0, 'WITHSCORES')[2] or '',
        rare and call('ZRANGE', since, 0, 0, 'WITHSCORES')[2] or '',
        in_flight > 0 and flight_since or '',
        held_until or '0',
        math.max(0, call('PTTL', lease)),
        paused_until or '',
      },
      in_flight,
      seen_at or '',
      ttl or '',
      (closed or receiving) and -1 or opened and 1 or 0,
      rare and (in_flight > 0 or call('EXISTS', suspects) == 1) and 1 or 0,
      in_use or nil,
    }
  end
end
return states
