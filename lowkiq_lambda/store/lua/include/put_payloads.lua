--! keys due jobs lanes
--! with tenants lanes
--! with debouncing debounce
--! rarely join_payloads
--! gives put_payloads
-- How payloads come to wait in the shard: those of a push, and that of a schedule entry.
-- `records`, {id, record, ...}, and `times`, {due time, id, ...}, of ids that did not wait: one command for a thousand ids
-- costs a fraction of a thousand commands. `earliest`: the earliest of these times. `joining`: payloads that join what
-- waits (join_payloads.lua). `quiet_text`: in a queue that debounces, the due time of jobs that were given none.
-- Those that a newer one stands for come into `superseded`. Returns 0 if the shard has no work sooner than before, 1 if the
-- caller is to notify others, 2 if this has notified them; and {position, due time of the id, ...} of what joined others.
local function put_payloads(merge, records, times, earliest, joining, superseded, channel, message, quiet_text)
  local before = call('ZRANGE', lanes or due, 0, 0, 'WITHSCORES')[2]
  if #records > 0 then
    call('HSET', jobs, unpack(records))
    if lanes then
      line_up(times)
      earliest = tonumber(call('ZRANGE', lanes, 0, 0, 'WITHSCORES')[2])
    end
    call('ZADD', due, unpack(times))
  end
  if has_debouncing and quiet_text then begin_debouncing(times, quiet_text) end
  local joined, postponed_to = {}, nil
  if #joining > 0 then joined, postponed_to = rarely().join_payloads(merge, joining, superseded, quiet_text) end
  if (postponed_to and math.min(earliest, postponed_to) or earliest) >= tonumber(before or math.huge) then return 0, joined end
  -- A server that allows scripts no message must not undo the push.
  return channel ~= '' and type(redis.pcall('PUBLISH', channel, message)) == 'number' and 2 or 1, joined
end
