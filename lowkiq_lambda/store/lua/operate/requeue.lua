--! keys jobs retry errors morgue morgue_payloads morgue_errors meta
--! needs shard put action texts records keep_error bury make_due
-- Puts what lies in the morgue back among what waits: due now, retry_count -1, each payload where its score belongs.
-- ARGV[4..9] and what it returns: include/action.lua; [10] time of the look (an id that was buried since stays),
--   [11..] ids. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local looked_at, arrival = tonumber(ARGV[10])

-- For an operator who looked before, this is a push.
local function touch(id)
  arrival = arrival or struct.pack('>I6', call('HINCRBY', meta, 'arrival', 1))
  local record = call('HGET', jobs, id)
  if record:sub(1, 1) == 'm' then
    call('HSET', jobs, id, 'm' .. arrival)
  else
    local place, payload = read_single(record)
    call('HSET', jobs, id, 't' .. arrival .. place .. payload)
  end
end

return act_on_each(11, function(id, after)
  local buried_at, error = call('ZSCORE', morgue, id), error_of(morgue_errors, id)
  if not buried_at or tonumber(buried_at) > looked_at then return false end
  local old, more = old_entries(morgue_payloads, id, after)
  if #old == 0 then return false, more end
  for _, entry in ipairs(old) do put(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
  -- Before the id leaves the morgue, as its failures are kept with an error.
  if error and call('HEXISTS', errors, id) == 0 then keep_error(errors, id, error) end
  forget(id, members_of(id, old))
  touch(id)
  make_due(id)
  call('ZREM', retry, id)
  return true, more
end)
