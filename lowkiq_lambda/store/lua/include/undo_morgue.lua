--! keys morgue morgue_errors
--! needs texts failures morgue undo_rows
--! gives dead_row
-- The rows of what leaves the morgue, as carry_dead.lua has them: `at`, when the last of it died; `started`, place and progress
-- of a started job. Kinds: 'lay', what was requeued leaves the waiting list, and is dead again; 'bury', what was
-- deleted is dead again.

local function dead_row(id, entries)
  local row = {id = id, entries = entries, at = call('ZSCORE', morgue, id) or nil}
  local noted = failures_of(id)
  row.error, row.failures = error_of(morgue_errors, id) or nil, #noted > 0 and noted or nil
  row.dead_progress = error_of(morgue_errors, PROGRESS .. id) or nil
  undo_log.beside(row, entries)
  return row
end
