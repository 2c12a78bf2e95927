--! keys runs meta
--! needs shard
--! gives MOST_DAYS room_for_runs before_runs keep_entry keep_runs
-- The runs of a queue that keeps them: a stream with an entry for each settling, in the same step as its outcomes. A holder
-- packs them (store/shard/run_entries.py). meta has how many there are (`runs`), their bytes, the id of the last entry, and
-- until when entries were dropped (milliseconds).
-- The last arguments of a settling are {count, packed runs, ...}, how many runs the shard keeps at least, how many bytes at
-- most, for how many seconds or '', and how many entries come before these; or 0 alone.
local MOST_DROPPED, MOST_DAYS, A_DAY = 8, 90, 86400

-- Whether memory has room for an entry: to be asked before the first write of a script, as Redis lets those pass that follow. A holder's
-- token is there, so that nothing is written.
local function room_for_runs()
  local answer = redis.pcall('HSETNX', meta, 'token', 0)
  return type(answer) ~= 'table'
end

-- How many arguments stand before those of the runs.
local function before_runs()
  local entries = tonumber(ARGV[#ARGV])
  return entries == 0 and #ARGV - 1 or #ARGV - 4 - 2 * entries
end

local function lose(count) call('HINCRBY', meta, 'runs_lost', count) end

-- The number of the next entry: times never go back, and equal ones count on.
local function next_entry(last)
  local ms, last_ms, seq = math.floor(now * 1000), string.match(last or '', '^(%d+)-(%d+)$')
  if last_ms and tonumber(last_ms) >= ms then return last_ms .. '-' .. string.format('%.0f', seq + 1) end
  return string.format('%.0f-0', ms)
end

-- Appends an entry, `packed` in this field; returns how many runs there are, their bytes, and the entry's number, or nil where it is lost.
local function keep_entry(field, count, packed)
  local kept, size, last = unpack(call('HMGET', meta, 'runs', 'runs_bytes', 'runs_at'))
  local number = next_entry(last)
  local added = redis.pcall('XADD', runs, number, 'n', count, field, packed)
  if type(added) == 'table' then return lose(count) end
  -- Of a stream that went by its age, or was forgotten, meta still has the counts.
  if call('XLEN', runs) == 1 then kept, size = 0, 0 end
  kept, size = (tonumber(kept) or 0) + count, (tonumber(size) or 0) + #packed
  call('HSET', meta, 'runs', kept, 'runs_bytes', size, 'runs_at', number)
  return kept, size
end

-- Drops the oldest entries, but leaves no fewer runs than `least`, unless they are too many bytes or too old.
local function drop_runs(kept, size, least, most_bytes, oldest_ms)
  local dropped
  for _ = 1, MOST_DROPPED do
    local oldest = call('XRANGE', runs, '-', '+', 'COUNT', 1)[1]
    if not oldest then break end
    local count, ms = tonumber(oldest[2][2]) or 0, tonumber((oldest[1]:match('^%d+')))
    if kept - count < least and size <= most_bytes and ms >= oldest_ms then break end
    call('XDEL', runs, oldest[1])
    kept, size, dropped = kept - count, size - #oldest[2][4], ms
  end
  if dropped then call('HSET', meta, 'runs', kept, 'runs_bytes', size, 'runs_dropped', string.format('%.0f', dropped)) end
end

local function keep_runs(has_room)
  local entries, kept, size = tonumber(ARGV[#ARGV]), nil, nil
  if entries == 0 then return end
  local first = before_runs()
  for i = first + 1, first + 2 * entries, 2 do
    local count = tonumber(ARGV[i])
    if has_room then
      local there, bytes = keep_entry('r', count, ARGV[i + 1])
      kept, size = there or kept, bytes or size
    else
      lose(count)
    end
  end
  if not kept then return end
  local least, most_bytes, age = tonumber(ARGV[#ARGV - 3]), tonumber(ARGV[#ARGV - 2]), tonumber(ARGV[#ARGV - 1])
  drop_runs(kept, size, least, most_bytes, age and (now - age) * 1000 or 0)
  call('EXPIRE', runs, age and math.ceil(age) + A_DAY or MOST_DAYS * A_DAY)
end
