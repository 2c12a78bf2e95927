--! keys morgue morgue_payloads morgue_errors failures
--! needs shard action records put keep_error failures morgue morgue_bytes
--! gives laying
-- Payloads come into the morgue again, and whether they lie there still.
local laying = {}

function laying.lies_there(id, entries)
  local prefix = box_prefix(id)
  for _, entry in ipairs(entries) do
    if not call('ZSCORE', morgue_payloads, prefix .. entry) then return false end
  end
  return #entries > 0
end

function laying.lay_again(row, entries)
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
