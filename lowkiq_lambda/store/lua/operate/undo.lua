--! keys undo
--! needs shard action morgue journal undo_rows
--! rarely undo_kinds
-- Takes back what an action did, row by row (undo_rows.lua). A row is skipped if its id has changed since. Each row goes: a second undo
-- of the action finds none. The undo has rows of its own.
-- ARGV[4..9] and what it returns: include/action.lua; [10..12] morgue limits: entries, bytes, age, [13] id of the action,
--   [14..] numbers of rows, in place of ids. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local undone = ARGV[13]

local reply = act_on_each(14, function(number)
  local entry = call('XRANGE', undo, number, number)[1]
  if not entry or entry[2][2] ~= undone then return false end
  local fields = entry[2]
  local is_sound, row = pcall(cmsgpack.unpack, fields[8])
  local is_over = tonumber(fields[10] or tonumber((number:match('^%d+'))) / 1000) < now - undo_log.seconds
  undo_log.drop(number, fields)
  if not is_sound or not rarely().UNDO[fields[6]] then return false end
  charge(#(row.entries or {}), #fields[8])
  local reason = is_over and 'too late' or rarely().UNDO[fields[6]](row)
  if reason then undo_log.skipped[#undo_log.skipped + 1] = reason end
  return not reason and not row.more
end)
trim_morgue(10, rarely().UNDO.dead)
write_journal(token)
return reply
