--! keys due jobs box seen since retry errors trouble suspects groups morgue morgue_payloads morgue_errors meta failures texts
--! keys debouncing receipts refs rows items headers_even headers_odd timetable lines lanes served marks_even marks_odd expiries
--! keys undo undo_notes
--! needs mover cargo free_memory_first
--! with requests carry_requests
--! rarely carry_waiting carry_dead carry_beside carry_undo moved_counters
-- Drops what was received elsewhere, and reads what comes next, of a shard that this move has closed. Harmless to repeat:
-- what is read stays until it is dropped.
-- ARGV[4]     epoch
-- ARGV[5..7]  include/cargo.lua
-- ARGV[8..]   what to drop: kind, name, drop, as the last call returned them; or 'counters', '', '' once all is received and counted
-- Returns {'OK', {kind, name, drop, row, ...}, 1 if the shard is empty, else 0}; {'OVER'}; or a refusal.
local refused, last = outdated()
if refused then return refused end
if not is_sealed(last) then return OVER end
free_memory_first()
local DROP = {
  waiting = rarely().drop_waiting,
  dead = rarely().drop_dead,
  receipts = rarely().drop_receipts,
  item = rarely().drop_row,
  entry = rarely().drop_entry,
  lane = rarely().drop_lane,
  mark = rarely().drop_mark,
  undo = rarely().drop_undo,
  request = has_requests and drop_request or nil,
  counters = rarely().drop_counters,
}
for i = 8, #ARGV, 3 do DROP[ARGV[i]](ARGV[i + 1], ARGV[i + 2]) end

if receipts then rarely().carry_receipts() end
if timetable and not is_full() then rarely().carry_timetable() end
if served and not is_full() then rarely().carry_lanes() end
if marks_even and not is_full() then rarely().carry_marks() end
-- Before the ids: their times go by it.
if has_requests and not is_full() then carry_requests() end
if not is_full() then rarely().carry_waiting() end
if not is_full() then rarely().carry_dead() end
if rows and not is_full() then rarely().carry_rows() end
if undo and not is_full() then rarely().carry_undo() end
if #cargo > 0 then return {'OK', cargo, 0} end

if call('EXISTS', jobs, box, suspects, morgue_payloads) > 0 then error('DAMAGED jobs that do not wait') end
call('UNLINK', due, seen, since, retry, errors, trouble, groups, morgue, morgue_errors, failures, texts)
if debouncing then call('UNLINK', debouncing) end
if refs then call('UNLINK', refs, items) end
if headers_even then call('UNLINK', headers_even, headers_odd) end
if expiries then call('UNLINK', expiries) end
if undo then call('UNLINK', undo, undo_notes) end
if lanes then call('UNLINK', lines, lanes, served) end
if marks_even then call('UNLINK', marks_even, marks_odd) end
call('HDEL', meta, 'in_use', 'morgue_bytes', 'had_started')
return {'OK', {}, 1}
