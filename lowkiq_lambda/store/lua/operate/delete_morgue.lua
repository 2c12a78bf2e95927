--! keys morgue morgue_payloads
--! needs shard action members_of records morgue journal
--! with tracking mark_items end_items
--! with undo undo_rows undo_morgue
-- Deletes what lies in the morgue under ids.
-- ARGV[4..9] and what it returns: include/action.lua; [10] time of the look (an id that died since stays),
--   [11..] ids. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local looked_at = tonumber(ARGV[10])
local reply = act_on_each(11, function(id, after, again)
  local dead_since = call('ZSCORE', morgue, id)
  if not dead_since or tonumber(dead_since) > looked_at then return false end
  local old, more = old_entries(morgue_payloads, id, after)
  if has_undo and #old > 0 then
    local row = dead_row(id, old)
    row.more = again or nil
    undo_log.keep('bury', row)
  end
  if has_tracking then finish_items(arrivals_of(old), 'c') end
  for _, entry in ipairs(old) do enter('deleted', {id, entry:sub(1, PLACE)}) end
  if #old > 0 then forget(id, members_of(id, old)) end
  return #old > 0, more
end)
write_journal(token)
return reply
