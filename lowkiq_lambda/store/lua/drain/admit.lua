--! keys limits permits wait_list
--! needs queue set_limits permits spend unspend
-- Decides whether a visit to a shard of the queue may begin or go on, and how many ids it may begin. A visit has one of the
-- permits of the queue. A permit ends by itself, so no process has to notice a death. For a second a free permit is offered to
-- the shards on the wait list, and only to them.
-- ARGV[4]   'enter'; 'stay', which prolongs the permit and asks for ids; 'keep', which only prolongs it; or 'leave'
-- ARGV[5]   nonce
-- ARGV[6]   number of the call: 0 for 'enter', one more each time; 'keep' has none, and may be sent beside the others
-- ARGV[7]   shard
-- ARGV[8]   ttl: seconds from now to the end of the permit
-- ARGV[9]   most permits, or ''
-- ARGV[10]  ids that may begin in any ARGV[11] seconds, or ''; what an operator has set comes before these three
-- ARGV[12]  ids wanted
-- ARGV[13]  ids granted by the last call that did not begin: they are given back
-- ARGV[14]  channel of the bell, which names the shards that are offered a permit, behind 'offer '
-- ARGV[15]  seconds for which the caller waits for a permit; a shard whose caller waits long enough is on the wait list
-- Returns {'OK', ids granted or '' without such a limit, how many wait, in how many seconds the next id may begin, seconds
--   in which those granted may begin}, to a repeat too; {'FULL', in how many seconds to come again}; {'GONE'}: the permit
--   has ended, or was left by an earlier copy of the call; or {'SKEW', time}.
local refused = skew()
if refused then return refused end
local op, nonce, n, shard, ttl = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local most, limit, per = limits_that_count(ARGV[9], ARGV[10], ARGV[11])
local want, unused, channel, patience = tonumber(ARGV[12]), tonumber(ARGV[13]), ARGV[14], tonumber(ARGV[15])
local OFFERED = 1
local slack = limit and math.min(1, per / 10) or 0

-- Redis lets a script write when memory is full only after a command that frees: this is the first.
call('HDEL', limits, '')
local lasting, taken, first_end, ended = permits_now()
if #ended > 0 then call('HDEL', permits, unpack(ended)) end
local mine, offered = lasting[nonce], 0

local function write(name, permit) call('HSET', permits, name, cmsgpack.pack(permit)) end

for name, permit in pairs(lasting) do
  if permit.offer then offered = offered + 1 end
  if ahead > 0 then write(name, permit) end
end

local log = {}
if limit then
  local packed = call('HGET', limits, 'log')
  local is_sound, found = pcall(cmsgpack.unpack, packed or cmsgpack.pack({}))
  -- An unreadable log is treated as fully used.
  log = is_sound and type(found) == 'table' and found or {queue_now + ahead + slack, limit}
  for i = 1, #log, 2 do log[i] = log[i] - ahead end
end
local left = limit and left_of(log, limit, per, queue_now) or math.huge

local function free() return math.min(most - taken, left - offered) end

-- Shards on the wait list, and visits above a limit that has become smaller.
local function waiting() return call('ZCARD', wait_list) + math.max(0, taken - most) end

-- When the next id may begin that is not promised to another shard.
local function ids_at()
  if left < 1 then return free_at(log, left, per) end
  return left - offered < 1 and queue_now + OFFERED or queue_now
end

local function seconds_until(time) return string.format('%.6f', math.max(0, time - queue_now)) end

-- Offers free permits to the shards that have waited longest, up to this shard.
local function offer(up_to)
  local rung = {}
  while free() >= 1 do
    local head = call('ZRANGE', wait_list, 0, 0)[1]
    if not head or head == up_to then break end
    call('ZREM', wait_list, head)
    write('offer ' .. head, {shard = head, till = queue_now + OFFERED, offer = true})
    taken, offered, first_end, rung[#rung + 1] = taken + 1, offered + 1, math.min(first_end, queue_now + OFFERED), head
  end
  if #rung > 0 then redis.pcall('PUBLISH', channel, 'offer ' .. table.concat(rung, ',')) end
end

-- Gives back ids of its last call that did not begin, while they are in the log.
local function take_back(count)
  if limit and count > 0 and mine.at > queue_now - per then
    unspend(log, count)
    left = left + count
  end
end

local function remember()
  call('HSET', limits, 'now', string.format('%.6f', queue_now), 'declared', cmsgpack.pack({ARGV[9], ARGV[10], ARGV[11]}))
  if limit then call('HSET', limits, 'log', cmsgpack.pack(log)) end
end

-- The rate lets no further id begin: from now on, waiting ids wait for the rate.
local function note_refusal()
  if limit and want > 0 and left - offered < 1 then
    call('HSET', limits, 'rejected', string.format('%.6f', queue_now))
  end
end

local function answer(granted)
  remember()
  return {'OK', limit and string.format('%d', granted) or '', waiting(), seconds_until(ids_at()), tostring(slack)}
end

local function grant()
  local granted, at = 0, queue_now
  note_refusal()
  if limit then
    granted = math.max(0, math.min(want, left - offered))
    if granted > 0 then at = spend(log, per, queue_now + slack, granted) end
    left = left - granted
  end
  mine = {shard = shard, till = queue_now + ttl, n = n, granted = granted, at = at}
  write(nonce, mine)
  return answer(granted)
end

-- Writes the permit of the visit if no shard is before it. Otherwise the shard may be on the wait list.
local function enter()
  local own_offer = 'offer ' .. shard
  if lasting[own_offer] then
    call('HDEL', permits, own_offer)
    taken, offered = taken - 1, offered - 1
  else
    offer(shard)
  end
  if free() < 1 then
    note_refusal()
    local come_at = math.max(ids_at(), taken >= most and first_end or 0)
    if come_at - queue_now <= patience then
      local last = call('ZRANGE', wait_list, -1, -1, 'WITHSCORES')[2]
      call('ZADD', wait_list, 'NX', tonumber(last or 0) + 1, shard)
    end
    remember()
    return {'FULL', seconds_until(come_at)}
  end
  call('ZREM', wait_list, shard)
  taken = taken + 1
  return grant()
end

if op == 'enter' then return mine and answer(mine.granted) or enter() end
if not mine or (op ~= 'keep' and n ~= mine.n and n ~= mine.n + 1) then
  remember()
  return {'GONE'}
end
if op == 'keep' then
  mine.till = queue_now + ttl
  write(nonce, mine)
  offer()
  return answer(0)
end
if n == mine.n and op == 'stay' then return answer(mine.granted) end
-- A visit that leaves under the number of an applied call has not received the answer to that call.
take_back(n == mine.n and mine.granted or unused)
if op == 'stay' then
  offer()
  return grant()
end
call('HDEL', permits, nonce)
taken = taken - 1
offer()
return answer(0)
