--! keys jobs errors trouble groups flight meta retry
--! needs trouble suspicion flight progress put_back note_failure keep_error morgue records shard chunks forget_errors retry_counts
--! needs dead_heads journal take_out
--! with tracking items mark_items end_items flown_arrivals
--! with headers drop_beside
--! with expiry drop_beside expiries
--! with journalling journalling
--! with marks mark_done
--! with requests honour rest_paused requests
--! gives clear settle_named
-- What became of ids in flight. An outcome is one of
--   {id, 'done'}
--   {id, 'retried', retry_count, due_at, error, signature, blamed, brief, rule or '', expiry or nil}   it failed and is
--                                         tried again; from now on its oldest payload has that expiry
--   {id, 'dead', error, signature, brief, rest or nil, rule or nil}   it failed for the last time: its oldest payload
--                                         leaves, and the others start anew, or with a `rest` but 'skip' do as
--                                         dead_heads.lua says
--   {id, 'blocked', error, signature, brief, rule or nil}   it failed for the last time, and waits to be unblocked
--   {id, 'discarded', brief, digits, rule, all}   by that rule its oldest payload is dropped, or with `all`, which is 1,
--                                         each; the others start anew. Digits: of the error's fingerprint
--   {id, 'expired', error or '', brief or '', arrival number, ...}   these payloads are over: dropped, or with an error
--                                         dead; the others start anew. With a brief the oldest has failed before
--   {id, 'rest'}                           another chunk of what follows its dead head
--   {id, 'returned'}                       it did not come to its end: as it was before the claim
--   {id, 'returned', exit_count}           the same, as it exited, so often in a row: what is due now goes first
--   {id, 'suspected', batch}               it failed in company and the batch named no id
--   {id, 'later', when or '', moved, reason or nil}   it goes on then, or behind what is due now; moved: 1 if it came further
--   {id, 'rejected', digits, which, reason, error or '', ...}   it ended with the business failure of a payload, by its
--                                         position from 1, or, as 0, of all others: these were done where there is no 0;
--                                         with an error the payload goes to the morgue
-- and, before one of these, {id, 'saved', progress}: so far it has come, and is a started job; {id, 'noted', note, ...}:
-- messages for the items of its payloads; and {id, 'ended', arrival number, reason or '', error or '', digits, ...}: these
-- payloads of it ended, with that business failure or well, and the outcome is that of the others; {id, 'some_expired', error or '', '', arrival number,
-- ...}: so are these, which are over.
-- where error, progress, reason, note and brief, which is kept for longer, are the positions of their texts among the arguments that
-- follow the outcomes: texts may be any bytes.
local GROUP, TEXTS = 3, 17
-- These words, or what they do, are in the journal whatever its level.
local IN_ANY_CASE = {dead = true, blocked = true, rejected = true, discarded = true, expired = true}
local BEFORE_OUTCOME = {saved = true, noted = true, ended = true, some_expired = true}
local KEPT_BY, EXPIRED, kept, expired = 'Rejected(keep=True)', 'expired', 0, 0

local function text_at(position) return ARGV[TEXTS + position] end

local function unblame(ids)
  for _, id in ipairs(ids) do
    local t = read_trouble(id)
    t.blamed = nil
    write_trouble(id, t)
  end
end

-- A group of suspects is systemic when its first three failures, and nothing else before them, were alike.
local function note_group_outcome(id, group, signature, error)
  local packed = group and call('HGET', groups, group)
  if not packed then return end
  local state = cmsgpack.unpack(packed)
  state.left = state.left - 1
  if not state.systemic then
    if (signature or '') == '' or (state.signature and state.signature ~= signature) then
      call('HDEL', groups, group)
      return
    end
    state.signature, state.error = signature, error
    state.ids[#state.ids + 1] = id
    if #state.ids == GROUP then
      state.systemic = true
      unblame(state.ids)
      state.ids = {}
    end
  end
  if state.left > 0 then
    call('HSET', groups, group, cmsgpack.pack(state))
  else
    call('HDEL', groups, group)
  end
end

-- Any outcome clears suspicion; what remains is whether the id alone was to blame, what its payloads have failed, and
-- that a holder which died had them in its hands: where they go on, `stays`, or the id was halved and others of it wait.
local function clear_suspicion(id, t, signature, error, blamed, stays, put_off)
  local abandoned = stays and t.abandoned or t.chunk_limit and call('HEXISTS', jobs, id) == 1 or nil
  write_trouble(id, {blamed = blamed or nil, retry_counts = t.retry_counts, abandoned = abandoned, put_off = put_off})
  note_group_outcome(id, t.group, signature, error)
  drop_suspect(id)
end

local function note_expired(id, entry)
  enter('expired', {id, entry:sub(1, PLACE)})
  expired = expired + 1
end

local settle_one = {}

function settle_one.retried(id, record, outcome, merge)
  local retry_count, due_at, error, signature, blamed, brief, rule, expiry = unpack(outcome, 3, 10)
  local _, _, entries, progress = read_flight(record)
  local text, brief_text, t = text_at(error), text_at(brief), read_trouble(id)
  -- Before it may join what waits.
  if has_expiry and expiry then write_expiries({entries[1]:sub(9, PLACE), struct.pack('>d', expiry)}) end
  put_back(merge, id, t, entries, due_at, retry_count, progress, brief_text)
  note_failure(id, record, brief_text, rule ~= '' and rule or nil)
  keep_error(errors, id, text)
  clear_suspicion(id, t, signature, text, blamed, true)
end

function settle_one.dead(id, record, outcome, merge)
  local error, signature, brief, rest, rule = unpack(outcome, 3, 7)
  local _, _, entries, progress = read_flight(record)
  local oldest = table.remove(entries, 1)
  local text, brief_text, t = text_at(error), text_at(brief), read_trouble(id)
  note_failure(id, record, brief_text, rule)
  if has_tracking then mark_items(arrivals_of({oldest}), 'x', brief_text) end
  kill(merge, id, oldest:sub(1, PLACE), oldest:sub(PLACE + 1), text, #entries == 0 and progress or nil, 'dead')
  if rule == EXPIRED then note_expired(id, oldest) end
  if rest and rest ~= 'skip' then
    clear_suspicion(id, t, signature, text)
    return end_rest(merge, id, t, entries, rest, text)
  end
  if #entries > 0 or call('HEXISTS', jobs, id) == 1 then
    put_back(merge, id, t, entries, now, -1, nil, brief_text)
    keep_error(errors, id, text)
  else
    drop_errors(errors, {id})
  end
  clear_suspicion(id, t, signature, text, nil, #entries > 0)
end

function settle_one.blocked(id, record, outcome, merge)
  local error, signature, brief, rule = unpack(outcome, 3, 6)
  local _, retry_count, entries, progress = read_flight(record)
  local text, brief_text, t = text_at(error), text_at(brief), read_trouble(id)
  note_failure(id, record, brief_text, rule)
  if has_tracking then mark_items(arrivals_of({entries[1]}), 'e', brief_text) end
  clear_suspicion(id, t, signature, text)
  block_head(merge, id, t, entries, retry_count, progress)
  keep_error(errors, id, text)
end

function settle_one.rest(id, record, _, merge)
  local t = read_trouble(id)
  give_back(merge, id, t, record)
  if t.rest then follow_head(merge, id, t, 0) else write_trouble(id, t) end
end

function settle_one.returned(id, record, outcome, merge)
  local t, exit_count = read_trouble(id), outcome[3]
  local due_at = give_back(merge, id, t, record, has_tracking and exit_count and REASON.INTERRUPTED)
  if not exit_count then
    t.at_risk = nil
    return write_trouble(id, t)
  end
  -- No suspect any more, as suspects go first: what ends its holder each time would let nothing pass.
  clear_suspicion(id, t)
  write_trouble(id, {blamed = t.blamed, retry_counts = t.retry_counts, exit_count = exit_count, abandoned = true})
  leave_rest(id, due_at)
end

function settle_one.suspected(id, record, outcome, merge, groups_of_call)
  local batch = outcome[3]
  local group = groups_of_call .. ':' .. batch
  local state = call('HGET', groups, group)
  state = state and cmsgpack.unpack(state) or {left = 0, ids = {}}
  state.left = state.left + 1
  call('HSET', groups, group, cmsgpack.pack(state))
  local t = read_trouble(id)
  suspect(id, t, give_back(merge, id, t, record, has_tracking and REASON.IN_COMPANY), group)
end

-- The id stays in flight, for the outcome that follows.
function settle_one.saved(id, record, outcome)
  call('HSET', flight, id, with_progress(record, text_at(outcome[3])))
end

function settle_one.later(id, record, outcome, merge)
  local due_at, moved, reason = unpack(outcome, 3, 5)
  local _, retry_count, entries, progress = read_flight(record)
  local t, has_moved = read_trouble(id), moved == 1
  if has_moved then
    keep_counts(id, t, false)
    retry_count = -1
  end
  put_back(merge, id, t, entries, due_at == '' and due_by or due_at, retry_count, progress, has_tracking and REASON.PUT_OFF)
  if has_moved then forget_errors({id}) end
  clear_suspicion(id, t, nil, nil, not has_moved and t.blamed, not has_moved, reason and text_at(reason))
  return has_moved and 'checkpointed' or 'returned'
end

-- Ends the items of its payloads: each with the reason of that payload, if it has one.
local function finish_refused(record, outcome)
  local arrivals, others = arrivals_flown({'', record}), nil
  for i = 4, #outcome, 3 do
    local which, reason = outcome[i], text_at(outcome[i + 1])
    if which == 0 then others = reason else finish_items({arrivals[which]}, 'f', reason) end
  end
  finish_items(arrivals, others and 'f' or 'd', others)
end

-- Those of its entries that go to the morgue, by their positions: {reason, error}; and whether any does not.
local function refused_and_kept(entries, outcome)
  local of, others, some_go = {}, nil, false
  for i = 4, #outcome, 3 do
    local which, reason, error = unpack(outcome, i, i + 2)
    local own = error ~= '' and {text_at(reason), text_at(error)} or false
    if which == 0 then others = own else of[which] = own end
  end
  for i = 1, #entries do
    if of[i] == nil then of[i] = others end
    some_go = some_go or not of[i]
  end
  return of, some_go
end

local function keeps_any(outcome)
  for i = 6, #outcome, 3 do
    if outcome[i] ~= '' then return true end
  end
  return false
end

-- Returns whether all of its payloads went to the morgue.
local function keep_refused(merge, id, record, outcome)
  if not keeps_any(outcome) then return false end
  local _, _, entries, progress = read_flight(record)
  local of, some_go = refused_and_kept(entries, outcome)
  for i, entry in ipairs(entries) do
    if of[i] then
      local reason, error = unpack(of[i])
      note_failure(id, record, reason, KEPT_BY)
      kill(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), error, #entries == 1 and progress or nil, 'dead')
      kept = kept + 1
    end
  end
  return not some_go
end

local function clear(ids)
  forget_errors(ids)
  for i, troubled in ipairs(call('HMGET', trouble, unpack(ids))) do
    if troubled then
      local t = cmsgpack.unpack(troubled)
      keep_counts(ids[i], t, false)
      clear_suspicion(ids[i], t)
    end
  end
end

function settle_one.rejected(id, record, outcome, merge)
  enter('rejected', {id, {outcome[3]}})
  if has_tracking and is_tracked() then finish_refused(record, outcome) end
  local all_kept = keep_refused(merge, id, record, outcome)
  if (has_headers or has_expiry) and not all_kept then drop_flown({id}) end
  if has_marks and not all_kept then mark_done({id, record}) end
  if call('EXISTS', errors, trouble) > 0 then clear({id}) end
end

-- What is left of an id when its oldest payload is dropped: as if it had been pushed now.
local function start_anew(merge, id, entries)
  local t = read_trouble(id)
  put_back(merge, id, t, entries, now, -1)
  clear_suspicion(id, t, nil, nil, nil, true)
  if not t.retry_counts and not call('ZSCORE', retry, id) then forget_errors({id}) end
end

-- {entry, ...} whose arrival numbers the outcome names, and the others.
local function parted_by_arrival(entries, outcome)
  local is_named, named, others = {}, {}, {}
  for i = 5, #outcome do is_named[outcome[i]] = true end
  for _, entry in ipairs(entries) do
    local part = is_named[number_of_arrival(entry)] and named or others
    part[#part + 1] = entry
  end
  return named, others
end

local function drop_payloads(id, entries, message)
  if has_tracking then finish_items(arrivals_of(entries), 'f', message) end
  local as_flown = {id, flight_record(0, 0, entries)}
  if has_headers or has_expiry then drop_of((arrivals_flown(as_flown))) end
  if has_marks then mark_done(as_flown) end
end

local function go_on_without(merge, id, left)
  if #left > 0 then return start_anew(merge, id, left) end
  if call('EXISTS', errors, trouble) > 0 then clear({id}) end
end

function settle_one.discarded(id, record, outcome, merge)
  local brief, digits, rule, all = unpack(outcome, 3, 6)
  local _, _, entries = read_flight(record)
  local dropped = all == 1 and entries or {table.remove(entries, 1)}
  if all == 1 then entries = {} end
  for _, entry in ipairs(dropped) do enter('discarded', {id, entry:sub(1, PLACE), {digits, rule}}) end
  drop_payloads(id, dropped, text_at(brief))
  go_on_without(merge, id, entries)
end

-- Over, and not to be tried: each is dropped, or dead with this error.
local function expire(merge, id, record, entries, error)
  for _, entry in ipairs(entries) do
    note_expired(id, entry)
    if error ~= '' then
      if has_tracking then mark_items(arrivals_of({entry}), 'x', REASON.EXPIRED) end
      note_failure(id, record, text_at(error), EXPIRED)
      kill(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), text_at(error), nil, 'dead')
      kept = kept + 1
    end
  end
end

function settle_one.expired(id, record, outcome, merge)
  local error, brief = outcome[3], outcome[4]
  local _, _, entries = read_flight(record)
  local over, left = parted_by_arrival(entries, outcome)
  expire(merge, id, record, over, error)
  if error == '' then drop_payloads(id, over, brief ~= '' and text_at(brief) or has_tracking and REASON.EXPIRED) end
  go_on_without(merge, id, left)
  if has_journalling and #left > 0 then trace('returned', {id}) end
end

function settle_one.some_expired(id, record, outcome, merge)
  local error, is_over = outcome[3], {}
  for i = 5, #outcome do is_over[outcome[i]] = {error = error ~= ''} end
  local over = take_out(id, record, is_over)
  expire(merge, id, record, over, error)
  if error == '' and has_tracking then finish_items(arrivals_of(over), 'f', REASON.EXPIRED) end
end

function settle_one.noted(_, record, outcome)
  if not has_tracking then return end
  for i = 3, #outcome do mark_items(arrivals_flown({'', record}), nil, text_at(outcome[i])) end
end

function settle_one.ended(id, record, outcome, merge)
  local ends, done = {}, {}
  for i = 3, #outcome, 4 do
    local reason, error, digits = unpack(outcome, i + 1, i + 3)
    ends[outcome[i]] = {reason = reason, error = error ~= '' and error, digits = digits}
  end
  for _, entry in ipairs(take_out(id, record, ends)) do
    local own, place = ends[number_of_arrival(entry)], entry:sub(1, PLACE)
    if own.reason == '' then
      done[#done + 1] = place
      if has_journalling then trace('ended', {id, place}) end
    else
      enter('rejected', {id, place, {own.digits}})
      if has_tracking then finish_items(arrivals_of({place}), 'f', text_at(own.reason)) end
    end
    if own.error then
      note_failure(id, record, text_at(own.reason), KEPT_BY)
      kill(merge, id, place, entry:sub(PLACE + 1), text_at(own.error), nil, 'dead')
      kept = kept + 1
    end
  end
  if has_tracking then finish_items(arrivals_of(done), 'd') end
end

-- {id, record, ...}
local function flown_of(ids)
  local claimed_jobs = {}
  for i, record in ipairs(call('HMGET', flight, unpack(ids))) do
    if record then claimed_jobs[#claimed_jobs + 1], claimed_jobs[#claimed_jobs + 2] = ids[i], record end
  end
  return claimed_jobs
end

-- Returns how many payloads the morgue had no room for, and the ids that were cancelled.
local function settle_named(merge, token, n, outcomes, morgue_limits_at)
  local groups_of_call, counts, done = token .. ':' .. n, {}, {}
  for _, outcome in ipairs(outcomes) do
    local id, word = outcome[1], outcome[2]
    local record = word ~= 'done' and call('HGET', flight, id)
    if word == 'done' then
      done[#done + 1] = id
    elseif record then
      local is_outcome = not BEFORE_OUTCOME[word]
      local is_cancelled = has_requests and is_outcome and honour(merge, id, record)
      local counter = is_cancelled and 'cancelled' or settle_one[word](id, record, outcome, merge, groups_of_call) or word
      if is_outcome then
        call('HDEL', flight, id)
        if is_cancelled or word ~= 'rest' and word ~= 'expired' then counts[counter] = (counts[counter] or 0) + 1 end
        if has_journalling and not (IN_ANY_CASE[word] or is_cancelled) then trace(counter, {id}) end
        if has_requests then rest_paused(id) end
      end
    end
  end
  if #done > 0 then
    -- Most ids that are done never had an error or a trouble, and no suspect is without one.
    if call('EXISTS', errors, trouble) > 0 then clear(done) end
    if has_tracking and is_tracked() then finish_items(arrivals_flown(flown_of(done)), 'd') end
    if has_marks then mark_done(flown_of(done)) end
    if has_headers or has_expiry then drop_flown(done) end
    if has_requests then requested.forget_cancels(done) end
    counts.done = call('HDEL', flight, unpack(done))
    for _, id in ipairs(has_journalling and done or {}) do trace('done', {id}) end
  end
  if counts.discarded then counts.rejected = (counts.rejected or 0) + counts.discarded end
  if expired > 0 then counts.expired = expired end
  for word, n in pairs(counts) do call('HINCRBY', meta, word, n) end
  local dead = (counts.dead or 0) + followers() + kept + (has_requests and killed_by_request() or 0)
  local trimmed = dead > 0 and trim_morgue(morgue_limits_at, dead) or 0
  write_journal(token, n)
  return trimmed, has_requests and honoured_ids() or {}
end
