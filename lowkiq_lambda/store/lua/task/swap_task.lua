--! keys task_records open_tasks task_expiry
-- Replaces the record of a task, if it is still the one that was read. Harmless to repeat: no two records are equal, as each
-- has a random version.
-- ARGV[4]  id of the task
-- ARGV[5]  the record as it was read, or '' where there was none
-- ARGV[6]  the record from now on, or '' where the task is forgotten
-- ARGV[7]  the least score in open_tasks, or '' where the task needs no more looks
-- ARGV[8]  when it is to be forgotten
-- Returns {'OK'}, or {'CHANGED', the record or ''}.
local id, read, written, least, expires_at = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local current = call('HGET', task_records, id) or ''
if current == written then return {'OK', ''} end
if current ~= read then return {'CHANGED', current} end
-- Redis lets a script write when memory is full only after a command that frees: this is the first.
call('HDEL', task_records, '')
if written == '' then
  call('HDEL', task_records, id)
  call('ZREM', task_expiry, id)
else
  call('HSET', task_records, id, written)
  call('ZADD', task_expiry, expires_at, id)
end
if least == '' then call('ZREM', open_tasks, id) else call('ZADD', open_tasks, 'GT', least, id) end
return {'OK', ''}
