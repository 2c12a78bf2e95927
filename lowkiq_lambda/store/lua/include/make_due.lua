--! keys since suspects
--! needs shard wait trouble retry_counts
-- Makes a waiting id due now, whatever it waited for; with what it is still suspected of.
local function make_due(id)
  wait(id, now)
  call('ZADD', suspects, 'XX', now, id)
  call('ZREM', since, id)
  local t = read_trouble(id)
  t.blamed = nil
  keep_counts(id, t, true)
  write_trouble(id, t)
end
