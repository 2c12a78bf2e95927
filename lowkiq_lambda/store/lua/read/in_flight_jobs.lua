--! keys errors flight
--! needs flight texts
-- The jobs in flight, read only. A claim's limits bound them.
-- Returns {{job, ...}}, a job being {id, due_at, retry_count, error or false, payloads, {entry, ...},
--   progress or false}.
local reply, records = {}, call('HGETALL', flight)
for i = 1, #records, 2 do
  local id = records[i]
  local due_at, retry_count, entries, progress = read_flight(records[i + 1])
  local text = string.format
  reply[#reply + 1] = {
    id, text('%.17g', due_at), text('%.17g', retry_count), error_of(errors, id), #entries, entries,
    progress or false,
  }
end
return {reply}
