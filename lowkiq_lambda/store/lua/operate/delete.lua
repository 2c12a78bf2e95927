--! keys expiries
--! needs shard action withdraw journal
--! with tracking mark_items end_items
-- Deletes what waits under ids; their payloads in flight stay.
-- ARGV[4..9] and what it returns: include/action.lua; [10] 'failed' to delete only of ids that have failed, else '',
--   [11..] ids. What remains of an id that had failed starts anew. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local failed_only = ARGV[10] == 'failed'
local reply = act_on_each(11, function(id, after, again)
  return withdraw(id, after, again, failed_only, function(_, place)
    enter('deleted', {id, place})
    if has_tracking then finish_items(arrivals_of({place}), 'c') end
    if has_expiry then call('HDEL', expiries, place:sub(9)) end
  end)
end)
write_journal(token)
return reply
