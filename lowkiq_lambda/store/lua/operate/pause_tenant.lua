--! needs shard free_memory_first lanes earliest_due
-- Stops claims of a tenant's ids until a time, or ends that; its suspects run all the same. Harmless to repeat.
-- ARGV[4]  tenant
-- ARGV[5]  until when, or '' to end a pause
-- Returns {'OK', when something can be claimed next or ''}, or a refusal.
local refused = refusal()
if refused then return refused end
free_memory_first()
local known = read_lane(ARGV[4])
known.paused = tonumber(ARGV[5])
set_served_from(ARGV[4], known)
return {'OK', earliest_due()}
