--! keys due jobs box errors
--! needs shard action texts trouble blocked_head withdraw morgue records payloads put started flight page retry_counts make_due far journal
--! with tracking mark_items
--! with undo undo_rows known_of_id
--! with requests requests
-- Unblocks ids whose head is blocked: they are due now, and the others under them go on.
-- ARGV[4..9] and what it returns: include/action.lua; [10] 'retry' to try the head again, as if it had never failed, or
--   'skip' to send it to the morgue; [11..13] morgue limits: entries, bytes, age, [14..] ids. The word of an id that stays, as it
--   is paused, is 'paused'. Or a refusal.
local reply = refusal(ARGV[5])
if reply then return reply end
local dead = 0
-- The payloads of a started job wait one by one, without its progress, once its first payload is gone.
local function take_from_started(id, record, head)
  local given = started_of(id)
  local entries, progress = {}, nil
  if given then entries, progress = read_handed(given, 1) end
  if entries[1] ~= head then return false end
  charge(#entries, #given)
  drop_started(id, record, given)
  for i = 2, #entries do put(merge, id, entries[i]:sub(1, PLACE), entries[i]:sub(PLACE + 1)) end
  return true, #entries == 1 and progress or nil
end

-- Returns whether nothing waits any more.
local function kill_head(id, head)
  local record, place, payload = call('HGET', jobs, id), head:sub(1, PLACE), head:sub(PLACE + 1)
  local several, was_started, progress = is_in_box(record), false, nil
  if record:byte(1) == STARTED then was_started, progress = take_from_started(id, record, head) end
  if has_tracking then mark_items(arrivals_of({head}), 'x') end
  kill(merge, id, place, payload, error_of(errors, id) or '', progress, 'dead')
  dead = dead + 1
  if several and not was_started then box_remove(merge, box_prefix(id), place, payload) end
  if several and #page(box, id, '', 1, 1) > 0 then return false end
  if not several then
    local _, left = payloads.parted(record, function(entry) return entry == head end)
    if left then call('HSET', jobs, id, left) end
    if left then return false end
  end
  forget_waiting(id)
  return true
end

reply = act_on_each(14, function(id)
  local t, at, skips = read_trouble(id), call('ZSCORE', due, id), ARGV[10] == 'skip'
  -- Its note may have been set aside as damaged: then its head is unknown, and the id goes on as it is.
  if not t.blocked_since and not (at and tonumber(at) >= FAR) then return false end
  if has_requests and requested.pause_of(id) then return false, nil, 'paused' end
  local head = head_of(id, t)
  if head and newer(head) then return false end
  enter('unblocked', {id})
  local row = has_undo and {id = id, at = at, entries = {}}
  if row then note_what_is_known(row, id, call('HGET', jobs, id), head and {head} or {}, 0) end
  if head then
    charge(1, #head)
    -- As they are while the head is the oldest.
    local counts = counts_of(id, t, true)
    counts[number_of_arrival(head)] = nil
    if row and skips then
      local given = started_of(id)
      undo_log.beside(row, {head})
      if given and #read_handed(given, 1) == 1 then row.started = given else row.entries = {head} end
      undo_log.keep('raise', row)
    end
    if skips and kill_head(id, head) then return true end
    note_counts(id, t, counts)
    t.head = nil
    write_trouble(id, t)
  end
  make_due(id)
  if row and not (skips and head) then
    row.due = call('ZSCORE', due, id)
    undo_log.keep('time', {id = id, at = at, due = row.due, trouble = row.trouble, counts = row.counts, since = row.since})
  end
  return true
end)
trim_morgue(11, dead)
write_journal(token)
return reply
