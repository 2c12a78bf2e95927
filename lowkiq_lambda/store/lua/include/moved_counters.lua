--! keys meta
--! needs work
--! gives counters_now drop_counters add_counters
-- Counters that go with a shard's jobs, so that the sums over a queue stay.
local MOVED_COUNTERS = {
  'done', 'retried', 'dead', 'rejected', 'returned', 'checkpointed', 'suspected', 'recovered', 'trimmed',
  'receipts_trimmed', 'blocked', 'superseded', 'discarded', 'expired', 'cancelled',
}
-- Those of the field `work`, in its order.
local OF_WORK = {'payloads', 'calls', 'busy_ms', 'computing_ms', 'held_ms'}

-- {name, count, ...}
local function counters_now()
  local counts = {}
  for i, count in ipairs(call('HMGET', meta, unpack(MOVED_COUNTERS))) do
    if count then counts[#counts + 1], counts[#counts + 2] = MOVED_COUNTERS[i], count end
  end
  local work = {work_of(call('HGET', meta, 'work'))}
  for i, name in ipairs(OF_WORK) do counts[#counts + 1], counts[#counts + 2] = name, string.format('%.0f', work[i]) end
  return counts
end

local function drop_counters() call('HDEL', meta, 'work', unpack(MOVED_COUNTERS)) end

-- As `counters_now` returns them, of any number of shards.
local function add_counters(counts)
  local work, place = {work_of(call('HGET', meta, 'work'))}, {}
  for i, name in ipairs(OF_WORK) do place[name] = i end
  for i = 1, #counts, 2 do
    local at = place[counts[i]]
    if at then work[at] = work[at] + counts[i + 1] else call('HINCRBY', meta, counts[i], counts[i + 1]) end
  end
  call('HSET', meta, 'work', struct.pack(WORK_FORMAT, unpack(work, 1, 6)))
end
