--! keys morgue morgue_payloads morgue_errors failures
--! needs shard action records put texts keep_error failures morgue morgue_bytes undo_waiting
--! gives dead_row lies_there lay_again
-- The rows of what leaves the morgue, as carry_dead.lua has them: `at`, when the last of it died; `started`, place and progress
-- of a started job. Kinds: 'lay', what was requeued leaves the waiting list, and is dead again; 'bury', what was
-- deleted is dead again.

local function dead_row(id, entries)
  local row = {id = id, entries = entries, at = call('ZSCORE', morgue, id) or nil}
  local noted = failures_of(id)
  row.error, row.failures = error_of(morgue_errors, id) or nil, #noted > 0 and noted or nil
  row.dead_progress = error_of(morgue_errors, PROGRESS .. id) or nil
  what_entries_have(row, entries)
  return row
end

local function lies_there(id, entries)
  local prefix = box_prefix(id)
  for _, entry in ipairs(entries) do
    if not call('ZSCORE', morgue_payloads, prefix .. entry) then return false end
  end
  return #entries > 0
end

local function lay_again(row, entries)
  local id, bytes = row.id, 0
  if row.failures and call('HEXISTS', failures, id) == 0 then
    call('HSET', failures, id, cmsgpack.pack(row.failures))
    if call('ZSCORE', morgue, id) then bytes = failures_size(row.failures) end
  end
  local at = math.max(tonumber(row.at or now), tonumber(call('ZSCORE', morgue, id) or 0))
  for _, entry in ipairs(entries) do
    kill(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), row.error or '', nil, nil, at)
  end
  if row.dead_progress then bytes = bytes + keep_error(morgue_errors, PROGRESS .. id, row.dead_progress) end
  count_dead(bytes)
end
