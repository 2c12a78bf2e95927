--! keys meta
--! gives counters_now drop_counters
-- Counters that go with a shard's jobs, so that the sums over a queue stay.
local MOVED_COUNTERS = {
  'done', 'retried', 'dead', 'rejected', 'returned', 'checkpointed', 'suspected', 'recovered', 'trimmed', 'payloads',
  'receipts_trimmed', 'blocked', 'superseded', 'discarded', 'expired', 'cancelled', 'calls', 'busy_ms', 'computing_ms',
  'held_ms',
}

-- {name, count, ...}
local function counters_now()
  local counts = {}
  for i, count in ipairs(call('HMGET', meta, unpack(MOVED_COUNTERS))) do
    if count then counts[#counts + 1], counts[#counts + 2] = MOVED_COUNTERS[i], count end
  end
  return counts
end

local function drop_counters() call('HDEL', meta, unpack(MOVED_COUNTERS)) end
