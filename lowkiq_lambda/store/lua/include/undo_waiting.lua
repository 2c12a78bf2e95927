--! keys due jobs
--! needs flight known_of_id undo_rows
--! with requests requests
--! gives keep_waiting
-- The rows of what leaves the waiting list: as carry_waiting.lua has them, of what goes alone. `refs` and `expiries` are {arrival
-- number, value, ...} of what is no longer kept once the payloads are gone.
-- Kinds: 'put', what was deleted waits again; 'raise', what was killed leaves the morgue, and waits again.
local before, KIND = {}, ARGV[4]:sub(29, 32) == 'kill' and 'raise' or 'put'

-- `given`: what a started job was handed, where it goes. `again`: another row of the id comes before, nil: if this call has one.
-- `lies`: where they lie in the morgue, if that is elsewhere.
local function keep_waiting(id, entries, given, again, kind, lies)
  if again == nil then again = before[id] ~= nil end
  local row = {id = id, entries = entries, started = given, more = again or nil, lies = lies}
  local all = given and read_handed(given, 1) or entries
  -- The count of the id is that of its oldest payload, which another row has.
  note_what_is_known(row, id, not again and call('HGET', jobs, id), all, 0)
  -- Its pause may be over when it comes back.
  local pause = has_requests and requested.pause_of(id)
  row.at = pause and pause.p.due or call('ZSCORE', due, id) or nil
  -- The payloads behind a started job are due by the time that it has now.
  before[id] = before[id] or row
  for _, name in ipairs({'at', 'since', 'suspect', 'error', 'failures', 'trouble'}) do row[name] = before[id][name] end
  undo_log.beside(row, all)
  undo_log.keep(kind or KIND, row)
end
