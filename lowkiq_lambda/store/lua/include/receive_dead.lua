--! keys morgue morgue_errors failures
--! needs receive_entries records keep_error failures morgue morgue_bytes
--! gives receive_dead
-- What died elsewhere, as carry_dead.lua has it; a second copy changes nothing.

local function receive_dead(merge, row)
  local id, bytes = row.id, 0
  receive_what_entries_have(row)
  if row.failures then
    local before = call('ZSCORE', morgue, id) and failures_size(failures_of(id)) or 0
    call('HSET', failures, id, cmsgpack.pack(row.failures))
    if call('ZSCORE', morgue, id) then bytes = bytes + failures_size(row.failures) - before end
  end
  for _, entry in ipairs(row.entries) do
    kill(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), row.error or '', nil, nil, row.at)
  end
  if row.started then bytes = bytes + keep_error(morgue_errors, PROGRESS .. id, row.started) end
  count_dead(bytes)
end
