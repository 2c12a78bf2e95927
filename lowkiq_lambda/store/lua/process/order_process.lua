--! keys alive orders
-- Leaves an order for a process, which gets it with its next heartbeat. Harmless to repeat.
-- ARGV[4]  the process
-- ARGV[5]  'quiet' or 'stop'; 'quiet' does not replace 'stop'
-- Returns {'OK'}; {'GONE'} if the process has had no heartbeat lately.
local process, order = ARGV[4], ARGV[5]
if call('HEXISTS', alive, process) == 0 then return {'GONE'} end
if call('HGET', orders, process) ~= 'stop' then
  call('HDEL', orders, process)
  call('HSET', orders, process, order)
end
return {'OK'}
