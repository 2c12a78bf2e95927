--! keys morgue morgue_payloads morgue_errors failures
--! needs receive_entries put keep_error failures bury morgue_bytes
-- What was buried elsewhere, as carry_buried.lua has it; a second copy changes nothing.

local function receive_buried(_, row)
  local id, bytes = row.id, 0
  receive_what_entries_have(row)
  if row.failures then
    local before = call('ZSCORE', morgue, id) and failures_size(failures_of(id)) or 0
    call('HSET', failures, id, cmsgpack.pack(row.failures))
    if call('ZSCORE', morgue, id) then bytes = bytes + failures_size(row.failures) - before end
  end
  local prefix = box_prefix(id)
  for _, entry in ipairs(row.entries) do
    local member = prefix .. entry
    if call('ZADD', morgue_payloads, 0, member) == 1 then bytes = bytes + #member end
  end
  if call('ZADD', morgue, row.at, id) == 1 then bytes = bytes + failures_size(failures_of(id)) end
  if row.error then bytes = bytes + keep_error(morgue_errors, id, row.error) end
  if row.started then bytes = bytes + keep_error(morgue_errors, PROGRESS .. id, row.started) end
  count_buried(bytes)
end
