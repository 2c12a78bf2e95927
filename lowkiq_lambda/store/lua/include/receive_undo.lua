--! keys undo_notes
--! needs receive_entries undo_rows
--! gives receive_undo
-- Takes in rows by which actions can be undone, as carry_undo.lua packs them. Those of one shard come in their order, so the
-- number of the last tells which are a second copy.
local is_begun = false

local function comes_later(number, last)
  local ms, seq = number:match('^(%d+)-(%d+)$')
  local last_ms, last_seq = (last or '0-0'):match('^(%d+)-(%d+)$')
  ms, seq, last_ms, last_seq = tonumber(ms), tonumber(seq), tonumber(last_ms), tonumber(last_seq)
  return ms > last_ms or (ms == last_ms and seq > last_seq)
end

local function receive_undo(_, given)
  local source, number, time, run, act, kind, row = unpack(given)
  if not comes_later(number, call('HGET', undo_notes, 'f' .. source) or nil) then return end
  if row.headers then receive_what_entries_have({headers = row.headers}) end
  row.headers = nil
  if not is_begun then undo_log.begin() end
  is_begun = true
  local note, packed = undo_log.note_of(run), cmsgpack.pack(row)
  note[1], note[2] = act, math.min(note[2], tonumber(time))
  if not row.more then note[4] = note[4] + 1 end
  undo_log.add({'run', run, 'act', act, 'kind', kind, 'row', packed, 'time', time}, packed, row.more, note)
  call('HSET', undo_notes, 'f' .. source, number)
  undo_log.finish()
end
