--! keys alive orders
-- All processes that are known, read only.
-- ARGV[2]  now, as include/shard.lua has it
-- Returns {now, {process, what heartbeat.lua keeps of it, ...}, {process, order, ...}}.
return {ARGV[2], call('HGETALL', alive), call('HGETALL', orders)}
