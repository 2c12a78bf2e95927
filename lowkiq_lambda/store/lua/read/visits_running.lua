--! needs queue permits
-- How many visits to shards of the queue run, and in how many seconds the last of them ends, if it is not prolonged: for
-- those who wait for the queue. Changes nothing.
-- Returns {'OK', how many, seconds}, or {'SKEW', time}.
local refused = skew()
if refused then return refused end
local lasting = permits_now()
local count, last_end = 0, queue_now
for _, permit in pairs(lasting) do
  if not permit.offer then count, last_end = count + 1, math.max(last_end, permit.till) end
end
return {'OK', count, string.format('%.6f', last_end - queue_now)}
