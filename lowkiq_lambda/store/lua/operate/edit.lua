--! keys jobs flight
--! needs shard action records flight journal undo_rows replace_payload touched untouched retry_counts trouble
--! with tracking mark_items
-- Puts another payload in the place of one that waits or is dead, if that is as it was seen.
-- ARGV[4..9]: include/action.lua; [10] arrival number, [11] SHA-1 of the payload as it was seen, [12] the payload, [13] '1' to
--   keep the cursor of a started job, else '', [14] who wants it, [15] the beginning of the old payload, as a text, [16] id.
-- Returns what include/action.lua says, with a skipped of one: 'gone', 'runs' or 'changed'; or where it is, 'waiting' or
--   'dead', with 'merged' where it has become one with an equal payload. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local number, seen_digest, payload, keeps_cursor, by, beginning = tonumber(ARGV[10]), unpack(ARGV, 11, 15)
keeps_cursor = keeps_cursor == '1'

local function told(...)
  for _, word in ipairs({...}) do undo_log.skipped[#undo_log.skipped + 1] = word end
end

local function is_in_flight(id)
  local record = call('HGET', flight, id)
  if not record then return false end
  local _, _, entries = read_flight(record)
  for _, entry in ipairs(entries) do
    if struct.unpack('>I6', entry, 9) == number then return true end
  end
  return false
end

local function enter_edit(id, entry)
  enter('edited', {
    id, entry:sub(1, PLACE), {old = seen_digest, new = redis.sha1hex(payload), by = by, payload = beginning},
  })
  if has_tracking then mark_items(arrivals_of({entry}), nil, REASON.EDITED) end
end

local function edit_waiting(id, entry, given)
  local row = {id = id, old = entry, was = touched_of(call('HGET', jobs, id))}
  enter_edit(id, entry)
  local merged = replacing.replace_waiting(id, entry, given, payload, keeps_cursor)
  replacing.note(row, given, payload, keeps_cursor)
  marking.set_touched(id, marking.stamp())
  local t = read_trouble(id)
  local count = counts_of(id, t, call('HGET', jobs, id))[number]
  row.stamp, row.counts, row.abandoned = marking.stamp(), count and {number, count} or nil, t.abandoned and 1 or nil
  -- A payload that became one with another cannot be told apart any more.
  if has_undo and not merged then undo_log.keep('edit', row) end
  told('waiting', merged and 'merged' or nil)
end

local function edit_dead(id, entry)
  enter_edit(id, entry)
  local merged = replacing.replace_dead(id, entry, payload)
  if has_undo and not merged then
    undo_log.keep('edit_dead', {id = id, entries = {entry:sub(1, PLACE) .. payload}, old = entry})
  end
  told('dead', merged and 'merged' or nil)
end

local reply = act_on_each(16, function(id)
  if is_in_flight(id) then return told('runs') end
  local entry, given = replacing.entry_waiting(id, number)
  local dead = not entry and replacing.entry_dead(id, number)
  if not entry and not dead then return told('gone') end
  if redis.sha1hex((entry or dead):sub(PLACE + 1)) ~= seen_digest then return told('changed') end
  if entry then edit_waiting(id, entry, given) else edit_dead(id, dead) end
  return true
end)
write_journal(token)
return reply
