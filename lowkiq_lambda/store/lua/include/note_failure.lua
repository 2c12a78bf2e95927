--! keys errors morgue_errors failures
--! needs failures shard morgue_bytes
--! gives note_failure
local FAILURES = 5

-- Before its error is written. The first failure has retry_count 0, as the id's own will be. `rule`: the name of the
-- worker's rule that decided about it, or nil.
local function note_failure(id, record, text, rule)
  local noted, dead = failures_of(id), call('HEXISTS', morgue_errors, id) == 1
  if #noted > 0 and not dead and call('HEXISTS', errors, id) == 0 then noted = {} end
  local bytes, _, retry_count = failures_size(noted), struct.unpack('>dd', record)
  -- An array without a hole takes fewer bytes.
  if noted[1] and noted[1][3] == text then noted[1][3] = noted[1][4] and false end
  table.insert(noted, 1, {now, retry_count + 1, text, rule})
  noted[FAILURES + 1] = nil
  call('HSET', failures, id, cmsgpack.pack(noted))
  if dead then count_dead(failures_size(noted) - bytes) end
end
