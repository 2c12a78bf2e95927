--! keys task_records
-- Reads the record of a task. ARGV[4] its id. Returns {record or ''}.
return {call('HGET', task_records, ARGV[4]) or ''}
