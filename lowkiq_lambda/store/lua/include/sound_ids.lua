--! keys due jobs box seen since retry errors trouble suspects groups flight morgue morgue_payloads morgue_errors meta
--! keys pushes_even pushes_odd failures texts
--! needs wait far records payloads keep_error shelf sound shard retry_counts trouble flight failures started
--! gives longest_payload take_away CHECKS
-- The checks of ids, key by key: CHECKS[key](id or field or member, value or score).
local longest = 0

local function measure(entry) longest = math.max(longest, #entry - PLACE) end

local function longest_payload() return longest end

local function is_in_flight(id) return call('HEXISTS', flight, id) == 1 end

-- It is due now, or if its head is blocked, when it was.
local function wait_again(id)
  local noted = table_in(call('HGET', trouble, id) or '')
  wait(id, noted and noted.blocked_since and FAR or now)
end

-- The id waits no more.
local function wipe(id)
  call('HDEL', jobs, id)
  wait_no_more(id)
  for _, key in ipairs({since, retry}) do call('ZREM', key, id) end
  if is_in_flight(id) then return end
  call('ZREM', suspects, id)
  call('HDEL', trouble, id)
  drop_errors(errors, {id})
  if call('HEXISTS', morgue_errors, id) == 0 then call('HDEL', failures, id) end
end

local function members(key, id)
  local prefix = struct.pack('>I4', #id) .. id
  return call('ZRANGE', key, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, 1)
end

local function take_away(name, key, id, bytes, why)
  set_aside(name, id, bytes, why)
  if key == errors or key == morgue_errors then return drop_errors(key, {id}) end
  call(call('TYPE', key).ok == 'hash' and 'HDEL' or 'ZREM', key, id)
end

local function check_time(name, key, id, score)
  if finite(score) then return end
  if key == due then wait_again(id) else call('ZADD', key, now, id) end
  note_repair(name, id, 'its time was ' .. score)
end

-- While the bytes of the morgue are counted anew.
local function recount(recounts, bytes)
  if recounts then call('HINCRBY', meta, 'morgue_bytes', bytes) end
end

-- The payload waits in the box, and the record of the id says so.
local function wait_in_box(id, entry)
  call('ZADD', box, 0, struct.pack('>I4', #id) .. id .. entry)
  local record = call('HGET', jobs, id)
  if not record or not is_record(record) then
    call('HSET', jobs, id, 'm' .. UNTOUCHED)
  elseif not is_in_box(record) then
    local entries, touched = entries_of(record)
    for _, other in ipairs(entries) do call('ZADD', box, 0, struct.pack('>I4', #id) .. id .. other) end
    call('HSET', jobs, id, 'm' .. touched)
  end
  if not call('ZSCORE', due, id) then wait_again(id) end
end

-- A started job of which not all is sound, or which is there twice, starts anew: its progress is true of all that it was
-- handed, together.
local function check_started(member, score, id, given)
  if tonumber(score) ~= 0 then
    call('ZADD', box, 0, member)
    note_repair('box', id, 'the started job had a score')
  end
  local entries, all, progress = handed_in(given)
  local twice = is_in_flight(id) or (started_of(id) or given) ~= given
  for _, entry in ipairs(entries) do measure(entry) end
  if not (all and progress) or twice then
    take_away('box', box, member, member, twice and 'the job is there twice' or 'the record is none, or was cut off')
    for _, entry in ipairs(entries) do
      if not twice then wait_in_box(id, entry) end
    end
    return
  end
  local record = call('HGET', jobs, id)
  if record and record:byte(1) == STARTED then return end
  if record and is_record(record) and not is_in_box(record) then wait_in_box(id, entries_of(record)[1]) end
  call('HSET', jobs, id, 'p' .. (record and record:byte(1) == SEVERAL and #record == 7 and record:sub(2) or UNTOUCHED))
  if not call('ZSCORE', due, id) then wait_again(id) end
  note_repair('box', id, 'the record of the id knew nothing of the started job')
end

local NO_TEXT, NO_PAYLOADS = 'the id is no UTF-8', 'there are no payloads under the id'
local CHECKS = {}

function CHECKS.jobs(id, record)
  local started = started_of(id) ~= nil
  local several = started or #members(box, id) > 0
  local why = not is_utf8(id) and NO_TEXT or not is_record(record) and 'the record is none'
    or (record:byte(1) == SEVERAL or record:byte(1) == STARTED) and not several and NO_PAYLOADS
  local kind, in_box = record:byte(1), is_in_box(record)
  local entries = not in_box and is_utf8(id) and entries_in(record) or {}
  for _, entry in ipairs(entries) do measure(entry) end
  if why then
    set_aside('jobs', id, record, why)
    for _, entry in ipairs(entries) do wait_in_box(id, entry) end
    if not several and #entries == 0 then return wipe(id) end
  end
  if why or in_box and (#record ~= 7 or (kind == STARTED) ~= started) then
    call('HSET', jobs, id, (started and 'p' or 'm') .. UNTOUCHED)
    note_repair('jobs', id, 'the mark of several payloads is made anew')
  end
  if not call('ZSCORE', due, id) then
    wait_again(id)
    note_repair('jobs', id, 'the id was not in due')
  end
end

function CHECKS.box(member, score)
  local started, given = started_in(member)
  if started then return check_started(member, score, started, given) end
  local id, entry = parts_of(member)
  if not id then return take_away('box', box, member, member, 'no payload of an id') end
  measure(entry)
  if tonumber(score) ~= 0 then
    call('ZADD', box, 0, member)
    note_repair('box', id, 'the payload had a score')
  end
  local record = call('HGET', jobs, id)
  if record and (is_in_box(record) or not is_record(record)) then return end
  local is_there = false
  for _, known in ipairs(record and entries_of(record) or {}) do is_there = is_there or known == entry end
  if is_there then call('ZREM', box, member) else wait_in_box(id, entry) end
  note_repair('box', id, 'the record of the id knew nothing of the payload')
end

function CHECKS.due(id, score)
  if call('HEXISTS', jobs, id) == 0 then
    set_aside('due', id, score, is_utf8(id) and NO_PAYLOADS or NO_TEXT)
    return wipe(id)
  end
  check_time('due', due, id, score)
end

-- Places of payloads, by which equal ones are found: one that is not there is not merged with.
function CHECKS.seen(field, place)
  -- Of a payload in the morgue, behind a byte that no id begins with.
  local named = field:sub(1, 1) == '\255' and field:sub(2) or field
  if #place == PLACE and #named >= 4 and is_utf8(named:sub(5, 4 + struct.unpack('>I4', named))) then return end
  take_away('seen', seen, field, place, 'no place of a payload')
end

function CHECKS.since(id, score)
  if call('HEXISTS', jobs, id) == 0 then return take_away('since', since, id, score, 'the id does not wait') end
  check_time('since', since, id, score)
end

function CHECKS.retry(id, count)
  if call('HEXISTS', jobs, id) == 0 then return take_away('retry', retry, id, count, 'the id does not wait') end
  local number = finite(count)
  if not number or number < 0 then take_away('retry', retry, id, count, 'no number of retries') end
end

function CHECKS.suspects(id, score)
  if call('HEXISTS', jobs, id) == 0 and not is_in_flight(id) then
    return take_away('suspects', suspects, id, score, 'the id neither waits nor runs')
  end
  check_time('suspects', suspects, id, score)
end

local function of_texts(name, key, is_sound, why)
  CHECKS[name] = function(id, value)
    local wrong = not is_utf8(id) and NO_TEXT or not is_sound(value) and why
    if wrong then take_away(name, key, id, value, wrong) end
  end
end

local function anything() return true end
of_texts('errors', errors, anything)
of_texts('trouble', trouble, is_trouble, 'the note is none of trouble')

-- Counts of payloads that were lost must not outlive the id.
local check_note = CHECKS.trouble
function CHECKS.trouble(id, packed)
  check_note(id, packed)
  local t = call('HEXISTS', trouble, id) == 1 and cmsgpack.unpack(packed) or {}
  if not t.retry_counts or call('HEXISTS', jobs, id) == 1 then return end
  local noted = #t.retry_counts
  keep_counts(id, t, true)
  if t.retry_counts and #t.retry_counts == noted then return end
  write_trouble(id, t)
  note_repair('trouble', id, 'the note counted payloads that are not there')
end

of_texts('groups', groups, is_group, 'the note is none of a group')
of_texts('failures', failures, are_failures, 'the note is none of failures')

-- Also of a dead started job, behind a byte that no id begins with.
function CHECKS.morgue_errors(id, stored, recounts)
  local named = id:sub(1, 1) == '\255' and id:sub(2) or id
  if not is_utf8(named) then return take_away('morgue_errors', morgue_errors, id, stored, NO_TEXT) end
  recount(recounts, #stored)
end

-- How many ids refer to a text: at most as many as have an error. More keep it longer than need be.
function CHECKS.texts(name, value, recounts)
  if name:sub(1, 1) ~= '#' then return recount(recounts and name:sub(1, 1) == 'm', #value) end
  if whole(value) then return end
  call('HSET', texts, name, call('HLEN', name:sub(2, 2) == 'w' and errors or morgue_errors))
  note_repair('texts', name, 'how many ids refer to the text was no number')
end

function CHECKS.flight(id, record)
  local due_at, retry_count, entries, all, progress = flown(record)
  local why = not is_utf8(id) and NO_TEXT or not all and 'the record is none, or was cut off'
  if why then set_aside('flight', id, record, why) end
  if not due_at or not is_utf8(id) or #entries == 0 then return call('HDEL', flight, id) end
  for _, entry in ipairs(entries) do measure(entry) end
  local at, count = finite(due_at) or now, finite(retry_count) or -1
  if at == due_at and count == retry_count and all then return end
  call('HSET', flight, id, flight_record(at, math.max(-1, count), entries, all and progress or nil))
  if not why then note_repair('flight', id, 'its time or retry_count was no number') end
end

-- As morgue.lua notes how many payloads an id has that has several.
local function size_member(id, size) return '\255' .. struct.pack('>I4', size) .. id end

local function size_there(id)
  local prefix = struct.pack('>I4', #id) .. id
  return call('ZLEXCOUNT', morgue_payloads, '[' .. prefix, '(' .. prefix .. '\255')
end

function CHECKS.morgue(id, score, recounts)
  if not is_utf8(id) or #members(morgue_payloads, id) == 0 then
    take_away('morgue', morgue, id, score, is_utf8(id) and NO_PAYLOADS or NO_TEXT)
    return drop_errors(morgue_errors, {id, '\255' .. id})
  end
  check_time('morgue', morgue, id, score)
  local size = size_there(id)
  if size > 1 and call('ZADD', morgue_payloads, 0, size_member(id, size)) == 1 then
    note_repair('morgue', id, 'how many payloads the id has was not noted')
  end
  local noted = call('HGET', failures, id)
  if noted and are_failures(noted) then recount(recounts, failures_size(cmsgpack.unpack(noted))) end
end

function CHECKS.morgue_payloads(member, score, recounts)
  local noted = member:sub(1, 1) == '\255' and #member > 4 and member:sub(6)
  if noted then
    local size = size_there(noted)
    if size > 1 and member == size_member(noted, size) and tonumber(score) == 0 then return end
    call('ZREM', morgue_payloads, member)
    if size > 1 then call('ZADD', morgue_payloads, 0, size_member(noted, size)) end
    return note_repair('morgue_payloads', noted, 'how many payloads the id has was another number')
  end
  local id, entry = parts_of(member)
  if not id then
    if not recounts then call('HINCRBY', meta, 'morgue_bytes', -#member) end
    return take_away('morgue_payloads', morgue_payloads, member, member, 'no payload of an id')
  end
  recount(recounts, #member)
  measure(entry)
  if tonumber(score) ~= 0 then call('ZADD', morgue_payloads, 0, member) end
  if call('ZADD', morgue, 'NX', now, id) == 1 then note_repair('morgue_payloads', id, 'the id was not in the morgue') end
end

for name, key in pairs({pushes_even = pushes_even, pushes_odd = pushes_odd}) do
  CHECKS[name] = function(push, answer)
    if not is_answer(answer) then take_away(name, key, push, answer, 'no answer to a push') end
  end
end
