--! keys due flight suspects since refs expiries
--! needs records put flight started retry_counts trouble wait blocked_head morgue journal in_use put_row
--! needs undo_rows undo_put undo_take undo_morgue undo_lay untouched replace_payload
--! with tracking mark_items end_items revive_items
--! with headers join_headers
--! gives UNDO
-- How the rows of actions are undone, by their kinds. `UNDO.dead`: how many payloads that has laid into the morgue.
local function enter_each(kind, id, entries)
  for _, entry in ipairs(entries) do enter(kind, {id, entry:sub(1, PLACE)}) end
end

local function with_started(row)
  local all = row.started and read_handed(row.started, 1) or {}
  for _, entry in ipairs(row.entries) do all[#all + 1] = entry end
  return all
end

-- Between the places that a requeue gave them, and those that they had.
local function move_all(from, to)
  for i, entry in ipairs(from) do
    if has_tracking then move_refs(arrivals_of({entry, to[i]})) end
    if has_headers then join_headers(to[i]:sub(1, PLACE), entry:sub(1, PLACE)) end
  end
end

-- By its kind: how a row is undone. Each returns nil, or why it is not.
local UNDO = {dead = 0}

function UNDO.put(row)
  local reason, inverse = put_again(row, 'restored')
  if reason then return reason end
  if inverse then undo_log.keep('take', inverse) end
end

function UNDO.raise(row)
  local id, all = row.id, with_started(row)
  local lies = row.lies or all
  if not laying.lies_there(id, lies) then return 'not dead any more' end
  -- Only its rest may run: its head must not come behind it.
  local blocked = row.trouble and row.trouble.blocked_since
  if blocked and call('HEXISTS', flight, id) == 1 then return 'ran meanwhile' end
  local again, members, prefix = dead_row(id, lies), {}, box_prefix(id)
  if row.lies and not is_superseded(id, all) then move_all(lies, all) end
  local reason, inverse = put_again(row, 'requeued')
  if reason then return reason end
  for i, entry in ipairs(lies) do members[i] = prefix .. entry end
  forget(id, members)
  if not inverse then return end
  inverse.lies = row.lies
  for _, name in ipairs({'at', 'error', 'failures', 'dead_progress', 'refs', 'expiries'}) do inverse[name] = again[name] end
  undo_log.keep('lay', inverse)
end

function UNDO.take(row)
  local all, reason = take_waiting(row, 'put')
  if not all then return reason end
  if has_tracking then finish_items(arrivals_of(all), 'c') end
  if has_expiry then
    for _, entry in ipairs(all) do call('HDEL', expiries, entry:sub(9, PLACE)) end
  end
  enter_each('deleted', row.id, all)
end

function UNDO.lay(row)
  local all, progress = take_waiting(row, 'raise')
  if not all then return progress end
  if has_tracking then mark_items(arrivals_of(all), 'x', REASON.KILLED) end
  if progress and #all == 1 then row.dead_progress = (row.lies or all)[1]:sub(1, PLACE) .. progress end
  enter_each('killed', row.id, all)
  if row.lies then move_all(all, row.lies) end
  laying.lay_again(row, row.lies or all)
  UNDO.dead = UNDO.dead + #all
end

function UNDO.bury(row)
  if laying.lies_there(row.id, row.entries) then return 'changed since' end
  if has_tracking and row.refs then
    for i = 1, #row.refs, 2 do call('HSET', refs, row.refs[i], row.refs[i + 1]) end
    note_use('tracking', true)
    mark_items(arrivals_of(row.entries), 'x')
  end
  laying.lay_again(row, row.entries)
  UNDO.dead = UNDO.dead + #row.entries
  enter_each('restored_dead', row.id, row.entries)
  undo_log.keep('drop', {id = row.id, entries = row.entries, more = row.more})
end

function UNDO.drop(row)
  local id, members, prefix = row.id, {}, box_prefix(row.id)
  if not laying.lies_there(id, row.entries) then return 'not dead any more' end
  local again = dead_row(id, row.entries)
  again.more = row.more
  undo_log.keep('bury', again)
  if has_tracking then finish_items(arrivals_of(row.entries), 'c') end
  enter_each('deleted', id, row.entries)
  for i, entry in ipairs(row.entries) do members[i] = prefix .. entry end
  forget(id, members)
end

-- Another payload has its place: the old one comes back, with its cursor where it lost that, and loses it again.
function UNDO.edit(row)
  local record, reason = marking.untouched_since(row)
  if not record then return reason end
  local id, payload = row.id, row.old:sub(PLACE + 1)
  local edited = replacing.entry_waiting(id, number_of_arrival(row.old))
  local inverse = {id = id, old = edited, was = row.was, counts = row.counts, abandoned = row.abandoned}
  local merged = false
  if row.lost then
    replacing.start_again(row, edited)
    inverse.entries, inverse.started, inverse.loses = {}, started_of(id), 1
  else
    merged = replacing.replace_waiting(id, edited, row.started, payload, not row.loses)
    replacing.note(inverse, row.started, payload, not row.loses)
  end
  enter('edited', {id, row.old:sub(1, PLACE), {old = redis.sha1hex(edited:sub(PLACE + 1)), new = redis.sha1hex(payload), by = 'undo'}})
  marking.set_touched(id, marking.stamp())
  inverse.stamp = marking.stamp()
  if not merged then undo_log.keep('edit', inverse) end
end

function UNDO.edit_dead(row)
  local id, edited, payload = row.id, row.entries[1], row.old:sub(PLACE + 1)
  if not laying.lies_there(id, {edited}) then return 'not dead any more' end
  enter('edited', {id, row.old:sub(1, PLACE), {old = redis.sha1hex(edited:sub(PLACE + 1)), new = redis.sha1hex(payload), by = 'undo'}})
  if not replacing.replace_dead(id, edited, payload) then undo_log.keep('edit_dead', {id = id, entries = {row.old}, old = edited}) end
end

-- The id waits for another time: `at` before, `due` since.
function UNDO.time(row)
  local id, at = row.id, call('ZSCORE', due, row.id)
  if not at or call('HEXISTS', flight, id) == 1 then return 'ran meanwhile' end
  -- A failure has moved it, or a pause alone.
  if tonumber(at) ~= tonumber(row.due) then return 'changed since' end
  local t = read_trouble(id)
  if row.trouble then
    if row.trouble.blocked_since and not head_of(id, row.trouble) then return 'changed since' end
    local counts = counts_of(id, t, true)
    add_counts(counts, row)
    t.blocked_since, t.head, t.blamed = row.trouble.blocked_since, row.trouble.head, row.trouble.blamed
    note_counts(id, t, counts)
    write_trouble(id, t)
  end
  wait(id, row.at)
  call('ZADD', suspects, 'XX', row.at, id)
  if row.since then call('ZADD', since, row.since, id) end
  if not row.trouble then undo_log.keep('time', {id = id, at = row.due, due = row.at}) end
end
