--! keys since suspects
--! needs shard wait trouble retry_counts blocked_head
--! gives make_due
-- Makes a waiting id due now, or at a time; suspicion of it stays. An id whose head
-- is blocked stays where it is, unless the head is gone. Returns whether the id is due.
local function make_due(id, at)
  at = at or now
  local t = read_trouble(id)
  if t.blocked_since and head_of(id, t) then return false end
  wait(id, at)
  call('ZADD', suspects, 'XX', at, id)
  call('ZREM', since, id)
  t.blamed, t.blocked_since, t.head, t.put_off = nil, nil, nil, nil
  keep_counts(id, t, true)
  write_trouble(id, t)
  return true
end
