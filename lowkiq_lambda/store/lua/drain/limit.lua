--! keys spent places line comes
--! needs spend unspend
-- One key of a limiter that handlers ask. The kinds: 'rate' lets so many points begin in any `per` seconds, 'leaky' lets
-- them drip, 'bucket' counts by periods of the clock, 'concurrent' has places that end by themselves.
-- spent   msgpack: `seen`, the latest time; `asked`, points of all tickets; `log` (spend.lua); `tat` and `since`; `began`,
--         the period that is counted, and its `count`; `held`, the mean of the seconds (at most 1) that places
--         were held lately
-- places  of 'concurrent': nonce -> when the place ends
-- line    tickets, by who asked first; comes: ticket -> when it was told to come again
-- The server's time is between now - doubt and now + doubt, and the caller uses a grant within `slack` seconds or not at
-- all. So what is spent is dated at the latest possible moment of its use, and forgotten by the earliest possible time.
-- ARGV[4]   doubt: seconds by which now may be wrong, either way
-- ARGV[5]   'take', 'spend' (more than was asked for), 'give' (back), 'keep' (a place), 'forget' (a ticket), 'look'
-- ARGV[6]   kind
-- ARGV[7]   limit: points, or places
-- ARGV[8]   per: seconds; of a place, until it ends
-- ARGV[9]   points
-- ARGV[10]  slack
-- ARGV[11]  claimant of the ticket, or ''
-- ARGV[12]  nonce of the place
-- ARGV[13]  'give', and 'take' in place of a grant whose answer came too late: the date of that grant; else 0
-- ARGV[14]  seconds for which free points are kept for a ticket that was told to come
-- Returns {'OK', date of the grant, points left, tickets}; {'FULL', seconds until it is worth to come, tickets before it,
--   tickets}; {'GONE'}: the place has ended; or {'SKEW', time}. A repeat of 'take' spends once more, but has one place.
local MOST_TICKETS, LAPSES_IN, SOONEST, LOOK_SOONEST, LOOK_AGAIN, TICK = 10000, 60, 0.02, 0.1, 1, 0.000001
local now, doubt, op, kind = tonumber(ARGV[2]), tonumber(ARGV[4]), ARGV[5], ARGV[6]
local limit, per, points, slack = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local who, nonce, date, patience = ARGV[11], ARGV[12], tonumber(ARGV[13]), tonumber(ARGV[14])
local earliest, latest = now - doubt, now + doubt + slack
local is_sound, state = pcall(cmsgpack.unpack, call('GET', spent) or cmsgpack.pack({}))
-- An unreadable state is treated as fully used.
if not is_sound or type(state) ~= 'table' then
  state = {log = {latest, limit}, tat = latest + per, began = latest, count = limit}
end

local seen = state.seen or earliest
if seen - earliest > 1 and ARGV[3] ~= '1' then return {'SKEW', string.format('%.6f', seen)} end
-- Of a caller that knows the time badly, its latest possible one says so too.
local behind = seen - now - doubt
if behind > 1 then
  -- The server's clock was set back: times go back with it, and jobs that come at their moments line up anew.
  for i = 1, #(state.log or {}), 2 do state.log[i] = state.log[i] - behind end
  state.tat, state.since = state.tat and state.tat - behind, state.since and state.since - behind
  local held = call('ZRANGE', places, 0, -1, 'WITHSCORES')
  for i = 1, #held, 2 do call('ZADD', places, tonumber(held[i + 1]) - behind, held[i]) end
  call('DEL', line, comes)
  state.asked, state.began = nil, state.began and math.floor(earliest / per) * per
else
  earliest = math.max(earliest, seen)
end
state.seen = earliest

local of = {rate = {}, leaky = {}, bucket = {}, concurrent = {}}
local cost, log, period = per / limit, state.log or {}, math.floor(earliest / per)

-- How many points may begin now.
function of.rate.left() return left_of(log, limit, per, earliest) end
function of.leaky.left() return math.floor((per - math.max(0, (state.tat or 0) - earliest)) / cost + 1e-9) end
function of.concurrent.left()
  call('ZREMRANGEBYSCORE', places, '-inf', earliest)
  return limit - call('ZCARD', places)
end
function of.bucket.left()
  -- By its moment, as periods of another length have other numbers.
  if period * per > (state.began or -1) then state.began, state.count = period * per, 0 end
  -- A grant that may be used in the next period waits for it.
  return math.floor(latest / per) > period and 0 or limit - state.count
end

-- Notes them; returns the date of the grant.
function of.rate.take(count) return spend(log, per, latest, count) end
function of.leaky.take(count)
  if (state.tat or 0) <= earliest then state.since = latest end
  state.tat = math.max(state.tat or 0, latest) + count * cost
  return latest
end
function of.bucket.take(count)
  state.count = state.count + count
  return latest
end
function of.concurrent.take()
  call('ZADD', places, latest + per, nonce)
  return latest
end

function of.rate.give(count) if date > earliest - per then unspend(log, count) end end
-- Points of a time before it had run dry are forgotten already. A date has come back as a text, so it is rounded.
function of.leaky.give(count)
  if state.since and date >= state.since - TICK then state.tat = state.tat - count * cost end
end
function of.bucket.give(count)
  if state.began and date >= state.began then state.count = math.max(0, state.count - count) end
end
function of.concurrent.give()
  if call('ZREM', places, nonce) == 0 then return end
  state.held = 0.8 * (state.held or LOOK_AGAIN) + 0.2 * math.min(LOOK_AGAIN, math.max(0, latest - date))
end

-- When so many points are free, after those of the tickets `ahead`.
function of.rate.free_at(count, ahead, left)
  local lacking = ahead % limit + count - left
  local at = lacking <= 0 and earliest or free_at(log, 1 - lacking, per)
  if at == 0 then at = (log[#log - 1] or earliest) + 2 * per end
  -- Each round of grants is dated later than its moment, and begins later than it could.
  return at + math.floor(ahead / limit) * (per + 2 * (latest - now))
end
function of.leaky.free_at(count, ahead) return (state.tat or 0) + (ahead + count) * cost - per end
function of.bucket.free_at(count, ahead, left)
  local over = math.max(0, ahead + count - math.max(0, left) - 1)
  return (period + 1 + math.floor(over / limit)) * per
end
function of.concurrent.free_at(_, ahead)
  local first = call('ZRANGE', places, 0, 0, 'WITHSCORES')[2]
  -- Most places are given back before they end, and nobody is woken by that.
  return math.min(tonumber(first or earliest) + math.floor(ahead / limit) * per,
    earliest + math.max(LOOK_SOONEST, (state.held or LOOK_AGAIN) * (1 + math.floor(ahead / limit))))
end

local function drop(ticket, count)
  call('ZREM', comes, ticket)
  if call('ZREM', line, ticket) == 1 then state.asked = math.max(0, (state.asked or 0) - count) end
end

local function keep_for(seconds, ...)
  for _, key in ipairs({...}) do
    local ends_in = math.ceil(seconds * 1000)
    if call('PTTL', key) < ends_in then call('PEXPIRE', key, string.format('%.0f', ends_in)) end
  end
end

local function remember()
  state.log = #log > 0 and log or nil
  local lasts = math.max(2 * per, (state.tat or 0) - earliest + per)
  call('SET', spent, cmsgpack.pack(state), 'PX', string.format('%.0f', math.ceil(lasts * 1000)))
  if kind == 'concurrent' then keep_for(2 * per + slack, places) end
end

if op == 'take' and date > 0 then of[kind].give(points) end
local left, waiting = of[kind].left(), call('ZCARD', line)
local function answer(at)
  return {'OK', string.format('%.6f', at), string.format('%.0f', math.max(0, left)), waiting}
end

if op == 'look' then return answer(earliest) end
if op == 'keep' then
  if not call('ZSCORE', places, nonce) then return {'GONE'} end
  of.concurrent.take()
  remember()
  return answer(latest)
end
if op ~= 'take' then
  if op == 'forget' then drop(who, points) else of[kind][op == 'give' and 'give' or 'take'](points) end
  remember()
  return answer(latest)
end
if kind == 'concurrent' and call('ZSCORE', places, nonce) then return answer(latest) end

for _, ticket in ipairs(call('ZRANGEBYSCORE', comes, '-inf', earliest - LAPSES_IN, 'LIMIT', 0, 100)) do
  drop(ticket, (state.asked or 0) / math.max(1, waiting))
  waiting = waiting - 1
end
if waiting <= 0 then state.asked, waiting = nil, 0 end
local rank = who ~= '' and call('ZRANK', line, who) or nil
local elders, of_all = rank or waiting, math.max(waiting, state.asked or 0)
local ahead, kept = of_all * elders / math.max(1, waiting), of_all
if rank then
  local told = tonumber(call('ZSCORE', comes, who) or earliest)
  local here = call('ZCOUNT', comes, earliest - patience, earliest)
  if told <= earliest and told >= earliest - patience then here = here - 1 end
  kept = patience > 0 and math.min(math.max(0, here), rank) * of_all / waiting or 0
end
if points + kept <= left then
  local at = of[kind].take(points)
  left = left - points
  if rank then
    drop(who, points)
    waiting = waiting - 1
  end
  remember()
  return answer(at)
end

-- An operator may have set a limit below the points: no ticket waits for what never comes.
local at = math.max(points > limit and earliest + per or of[kind].free_at(points, ahead, left), earliest + SOONEST)
if who ~= '' and points <= limit and (rank or waiting < MOST_TICKETS) then
  if not rank then
    local last = call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
    call('ZADD', line, tonumber(last or 0) + 1, who)
    state.asked, waiting = of_all + points, waiting + 1
  end
  call('ZADD', comes, string.format('%.6f', at), who)
  keep_for(at - earliest + 2 * LAPSES_IN, line, comes)
end
remember()
return {'FULL', string.format('%.6f', at - earliest + TICK), elders, waiting}
