--! keys jobs due errors groups flight meta trouble suspects lines
--! needs note_failure morgue records suspicion put_back shard keep_error trouble flight dead_heads journal
--! with tracking mark_items
--! with tenants lanes
--! with runs keep_recovered
--! with requests honour rest_paused
--! gives recover
-- Recovery: what a dead holder left in flight goes back to where it was claimed from, as suspects.
-- Only a lone suspect that was at risk has a crash counted, under its holder's nonce, as that may be alive and say
-- so later (survive.lua); the third of a single payload kills it.
local MAX_CRASHES = 3
-- Of the ids that were recovered the log names so many, and so many bytes of each.
local NAMED, NAME_BYTES = 10, 400

local function how_it_ended(abandoned, holder)
  if not abandoned then return 'died' end
  -- The nonce of one whose process died after that has yet another word before it.
  return holder:find('evicted ', 1, true) and 'evicted' or 'stopped'
end

local function kill_crashed(merge, id, t, record, entry, crashed, progress, dead_head)
  note_failure(id, record, crashed)
  if dead_head == 'block' then
    local _, retry_count = read_flight(record)
    if has_tracking then mark_items(arrivals_of({entry}), 'e', crashed) end
    drop_suspect(id)
    block_head(merge, id, t, {entry}, retry_count, progress)
    return keep_error(errors, id, crashed)
  end
  if has_tracking then mark_items(arrivals_of({entry}), 'x', crashed) end
  kill(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), crashed, progress, 'dead')
  drop_suspect(id)
  if dead_head then return end_rest(merge, id, t, {}, dead_head, crashed) end
  local rest = {retry_counts = t.retry_counts}
  if call('HEXISTS', jobs, id) == 1 then
    put_back(merge, id, rest, {}, now, -1)
    -- Before it was halved, a holder that died had these in its hands, too.
    rest.abandoned = t.chunk_limit and true
  else
    drop_errors(errors, {id})
  end
  write_trouble(id, rest)
end

local function halve(t, entries, holder)
  t.chunk_limit, t.halvings = math.floor(#entries / 2), t.halvings or {}
  t.halvings[#t.halvings + 1] = holder
end

-- Returns the entry that died, if the counted crash was the last.
local function count_crash(merge, id, record, t, crashed, holder, dead_head)
  local due_at, retry_count, entries, progress = read_flight(record)
  if #entries > 1 and not progress then
    halve(t, entries, holder)
  else
    -- Crashes are counted of the payload: one that came before it since has none. By its text, as an equal one may replace it.
    local payload = redis.sha1hex(entries[1]:sub(PLACE + 1))
    if t.crashed_payload ~= payload or not t.crashes then t.crashes, t.crashed_payload = {}, payload end
    t.crashes[#t.crashes + 1] = holder
    if #t.crashes >= MAX_CRASHES and #entries > 1 then
      -- Smaller chunks find out which of them it is, each from its start: the progress was made on all of them.
      t.crashes, t.crashed_payload = nil, nil
      halve(t, entries, holder)
      record = flight_record(due_at, retry_count, entries)
    elseif #t.crashes >= MAX_CRASHES then
      -- One that crashed is not like the rest of its group, which can't prove systemic any more.
      if t.group then call('HDEL', groups, t.group) end
      kill_crashed(merge, id, t, record, entries[1], crashed, progress, dead_head)
      return entries[1]
    end
  end
  t.abandoned = true
  suspect(id, t, give_back(merge, id, t, record, has_tracking and REASON.PROCESS_ENDED), t.group or '')
end

-- `limits_at`: where ARGV has the limits of the morgue. `abandoned`: the holder itself gave up. `holder`: its nonce. Returns how many ids were recovered, {id, entry, ...}
-- of what died (or blocked, where `dead_head` is 'block'), the ids that the log names, and how many payloads the morgue
-- had no room for.
local function recover(merge, limits_at, crashed, abandoned, holder, dead_head)
  local kind, left, dead, named = call('HGET', meta, 'claim_kind'), call('HGETALL', flight), {}, {}
  local token, n, owner, since = unpack(call('HMGET', meta, 'token', 'call', 'owner', 'acquired_at'))
  local ids, crash_counted, dead_ids, trimmed = {}, {}, {}, 0
  for i = 1, #left, 2 do ids[#ids + 1] = left[i] end
  local stored, records = call('HMGET', trouble, unpack(ids)), call('HMGET', jobs, unpack(ids))
  local many, troubles = {times = {}}, {}
  for i, id in ipairs(ids) do
    local record, t = left[2 * i], stored[i] and cmsgpack.unpack(stored[i]) or {}
    if #named < NAMED then named[#named + 1] = id:sub(1, NAME_BYTES) end
    if has_requests and honour(merge, id, record) then
      -- It was cancelled and does not run again, so the death is not held against it.
    elseif kind == 'LONE' and t.at_risk and not abandoned then
      crash_counted[#crash_counted + 1] = id
      local entry = count_crash(merge, id, record, t, crashed, holder, dead_head)
      if entry then
        dead_ids[#dead_ids + 1], dead[#dead + 1] = id, id
        dead[#dead + 1] = entry
      end
    else
      many.record = records[i]
      give_back(merge, id, t, record, has_tracking and (abandoned and REASON.INTERRUPTED or REASON.PROCESS_ENDED), many)
      t.at_risk, t.abandoned = nil, true
      if not abandoned then t.run_alone, t.group = t.run_alone or kind == 'TOGETHER' or nil, t.group or '' end
      troubles[#troubles + 1], troubles[#troubles + 2] = id, cmsgpack.pack(t)
    end
  end
  if #troubles > 0 then
    if lines then line_up(many.times) end
    call('ZADD', due, unpack(many.times))
    if not abandoned then call('ZADD', suspects, unpack(many.times)) end
    -- Last, as in `suspect`.
    call('HSET', trouble, unpack(troubles))
  end
  call('DEL', flight)
  call('HDEL', meta, 'flight_since')
  if has_requests then
    for _, id in ipairs(ids) do rest_paused(id) end
    if #honoured_ids() > 0 then call('HINCRBY', meta, 'cancelled', #honoured_ids()) end
    if killed_by_request() > 0 then trimmed = trim_morgue(limits_at, killed_by_request()) end
  end
  if #dead > 0 then
    local blocked = dead_head == 'block'
    if not blocked then trimmed = trimmed + trim_morgue(limits_at, #dead / 2 + followers()) end
    call('HINCRBY', meta, blocked and 'blocked' or 'dead', #dead / 2)
  end
  call('HINCRBY', meta, 'recovered', #ids)
  enter('recovered', {
    owner = owner or '', since = since or '', how = how_it_ended(abandoned, holder or ''), count = #ids,
    ids = {unpack(ids, 1, math.min(#ids, MOST_IN_ENTRY))}, crash_counted = crash_counted, dead = dead_ids,
  })
  write_journal(token, n)
  if has_runs then
    local outcomes = {}
    for _, id in ipairs(dead_ids) do outcomes[id] = dead_head == 'block' and 'blocked' or 'dead' end
    keep_recovered(owner, token, since, ids, outcomes, MOST_IN_ENTRY)
  end
  return #ids, dead, named, trimmed
end
