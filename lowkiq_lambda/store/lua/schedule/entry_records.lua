--! keys timetable
-- Returns {{name, packed record, ...}}: all records of entries in the shard.
return {call('HGETALL', timetable)}
