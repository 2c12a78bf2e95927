--! keys meta
--! gives free_memory_first
-- Redis lets a script write when memory is full only after a command that frees, hence this first write.
local function free_memory_first() call('HDEL', meta, '') end
