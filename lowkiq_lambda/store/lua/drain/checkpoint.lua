--! keys due flight meta lanes
--! needs shard turn free_memory_first trouble progress lease stop_request
--! with requests requests
--! rarely next_served lanes
-- Saves how far a job in flight has come, and prolongs the lease.
-- ARGV[4]   nonce
-- ARGV[5]   token
-- ARGV[6]   number of the call
-- ARGV[7]   ttl
-- ARGV[8]   id
-- ARGV[9]   progress
-- ARGV[10]  '1' for the first save that moves the cursor of a lone suspect's run: the death of its holder counts no crash
--   from now on, and earlier counted crashes are forgotten
-- ARGV[11]  the oldest due_at of what else is in flight, absent if the caller does not know it
-- Returns {'OK', when the next other id is due or '', 'paused', 'limited', 'quiet' or ''} and, where ids in flight have requests,
--   these as include/requests.lua has them, {'LOST'}, or a refusal.
local refused = refusal()
if refused then return refused end
local token, n, id = ARGV[5], ARGV[6], ARGV[8]
local verdict, held_until = turn(ARGV[4], token, tonumber(n))
if verdict == 'LOST' then return {'LOST'} end
if verdict == 'NEXT' then
  free_memory_first()
  local record = call('HGET', flight, id)
  if record then call('HSET', flight, id, with_progress(record, ARGV[9])) end
  if ARGV[10] == '1' then
    local t = read_trouble(id)
    t.at_risk, t.crashes, t.crashed_payload = nil, nil, nil
    write_trouble(id, t)
  end
  -- A job that makes progress is not late: its shard must not starve the others.
  if record and (ARGV[11] or call('HLEN', flight) == 1) then
    local oldest = ARGV[11] and math.min(now, tonumber(ARGV[11])) or now_text
    call('HSET', meta, 'call', n, 'flight_since', oldest)
  else
    call('HSET', meta, 'call', n)
  end
  hold(token, tonumber(ARGV[7]), held_until)
end
local wanted = has_requests and requested.in_flight() or nil
if lanes then
  -- A pause of its tenant ends the run at this yield, as one of its queue does.
  if (rarely().read_lane(rarely().lane_of(id)).paused or 0) > now then
    wanted = wanted or {}
    wanted[#wanted + 1], wanted[#wanted + 2] = id, 'p'
  end
  return {'OK', rarely().next_served({[id] = true}, 1), stop_request(token), wanted}
end
local listed, other_due = call('ZRANGE', due, 0, 1, 'WITHSCORES'), ''
for i = #listed - 1, 1, -2 do
  if listed[i] ~= id then other_due = listed[i + 1] end
end
return {'OK', other_due, stop_request(token), wanted}
