--! keys timetable
-- Returns {{name, packed record, ...}}: all that the shard knows of entries.
return {call('HGETALL', timetable)}
