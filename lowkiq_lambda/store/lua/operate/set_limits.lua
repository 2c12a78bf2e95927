--! keys limits
--! needs queue set_limits
-- Sets limits of a queue, which come before those that code declares; or ends that. Harmless to repeat.
-- ARGV[4]  msgpack of a map of what is set, as include/set_limits.lua reads it: other limits stay as they are; or '' where
--   what code declares is to count again
-- Returns {'OK', number of the change}, larger each time; or {'SKEW', time}.
local refused = skew()
if refused then return refused end
-- Redis lets a script write when memory is full only after a command that frees: this is the first.
call('HDEL', limits, '')
if ARGV[4] == '' then
  call('HDEL', limits, 'set')
else
  local set = limits_set() or {}
  for name, value in pairs(cmsgpack.unpack(ARGV[4])) do set[name] = value end
  call('HSET', limits, 'set', cmsgpack.pack(set))
end
return {'OK', call('HINCRBY', limits, 'changes', 1)}
