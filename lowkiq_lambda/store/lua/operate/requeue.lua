--! keys due jobs retry errors morgue morgue_payloads morgue_errors meta
--! needs shard action members_of texts records payloads keep_error morgue make_due started journal retry_counts trouble
--! rarely requeue_order
--! with tracking mark_items revive_items
--! with undo undo_rows undo_morgue touched flight
--! with requests requests
-- Puts what lies in the morgue back among what waits, with retry_count -1. A started job goes on with its progress, if its
-- payload is all that lies there and nothing else is under the id.
-- ARGV[4..9] and what it returns: include/action.lua; [10] time of the look (an id that died since stays),
--   [11] the order: 'score', where each payload's score belongs; 'unless_newer', as that, but a payload stays dead where a
--   newer one of its id waits or is in flight; 'last', behind all payloads of its id. Where the merge is "latest" the newest
--   of an id comes back, unless a newer one waits, is in flight or was done. [12] when the first of the ids is due,
--   or '' for now; one that waits is not put off. [13] seconds between two of them, [14..] ids. The word of an id
--   that stays, as it is paused, is 'paused'. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local looked_at, order, requeued_ids, arrival = tonumber(ARGV[10]), ARGV[11], 0, nil

-- For an operator who looked before, this is a push. Two payloads share no number: by that alone their items, headers and
-- expiries are known.
local function next_arrival()
  arrival = struct.pack('>I6', call('HINCRBY', meta, 'arrival', 1))
  return arrival
end

local function touch(id)
  local touched, record = arrival or next_arrival(), call('HGET', jobs, id)
  call('HSET', jobs, id, is_in_box(record) and record:sub(1, 1) .. touched or record_of(entries_of(record), touched))
end

local reply = act_on_each(14, function(id, after, again)
  local dead_since, kept = call('ZSCORE', morgue, id), call('HMGET', morgue_errors, id, PROGRESS .. id)
  local error = text_of(morgue_errors, kept[1])
  if not dead_since or tonumber(dead_since) > looked_at then return false end
  if has_requests and requested.pause_of(id) then return false, nil, 'paused' end
  local old, more = old_entries(morgue_payloads, id, after)
  if order == 'unless_newer' or has_marks then old = rarely().not_overtaken(id, old) end
  if #old == 0 then return false, more end
  local row, merged = has_undo and dead_row(id, old), false
  if row then row.was, row.due_before = UNTOUCHED, call('ZSCORE', due, id) or nil end
  if row and call('HEXISTS', jobs, id) == 1 then row.was = touched_of(call('HGET', jobs, id)) end
  local troubled = read_trouble(id)
  local counts = troubled.blocked_since and counts_of(id, troubled, true)
  -- Before they may join what waits.
  if has_tracking then revive_items(arrivals_of(old)) end
  local progress, waited_at = kept[2] and rarely().take_progress(id, old, kept[2]), call('ZSCORE', due, id)
  local entries = order == 'last' and rarely().behind_all(id, old) or old
  if progress and order ~= 'last' then entries = {rarely().at_place(old[1], old[1]:sub(1, 8) .. next_arrival())} end
  for i, entry in ipairs(entries) do
    local from, to = old[i]:sub(1, PLACE), entry:sub(1, PLACE)
    enter('requeued', from == to and {id, from} or {id, from, to})
  end
  if progress then
    keep_started(merge, id, entries, progress, false)
  else
    for _, entry in ipairs(entries) do
      if unite(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1)) then merged = true end
    end
  end
  -- Before the id leaves the morgue, as its failures are kept with an error.
  if error and call('HEXISTS', errors, id) == 0 then keep_error(errors, id, error) end
  forget(id, members_of(id, old))
  if not progress then touch(id) end
  local at = tonumber(ARGV[12]) and tonumber(ARGV[12]) + requeued_ids * tonumber(ARGV[13])
  if at and waited_at then at = math.min(at, tonumber(waited_at)) end
  if not again then requeued_ids = requeued_ids + 1 end
  if make_due(id, at) then
    call('ZREM', retry, id)
  elseif counts and not merged then
    -- The blocked head has failed, and it may not be the oldest any more.
    local t = read_trouble(id)
    note_counts(id, t, counts)
    write_trouble(id, t)
  end
  if row then
    row.lies = (order == 'last' or progress) and old or nil
    row.entries, row.started = progress and {} or entries, progress and handed(entries, progress) or nil
    row.stamp, row.due, row.more = touched_of(call('HGET', jobs, id)), call('ZSCORE', due, id), again or nil
    -- A holder that has died had others of the id.
    row.abandoned = read_trouble(id).abandoned and 1 or nil
    -- A payload that became one with one that waits cannot be told apart any more.
    if not merged then undo_log.keep('lay', row) end
  end
  return true, more
end)
write_journal(token)
return reply
