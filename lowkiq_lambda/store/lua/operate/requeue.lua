--! keys jobs retry errors flight morgue morgue_payloads morgue_errors meta
--! needs shard put action texts records keep_error bury make_due morgue_bytes started journal retry_counts
--! with tracking mark_items revive_items
--! with marks marks put_latest comes_before flight
-- Puts what lies in the morgue back among what waits: due now, retry_count -1, each payload where its score belongs. A
-- started job goes on with its progress, if its payload is all that lies there and nothing else is under the id.
-- ARGV[4..9] and what it returns: include/action.lua; [10] time of the look (an id that was buried since stays),
--   [11..] ids. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local looked_at, arrival = tonumber(ARGV[10])

-- For an operator who looked before, this is a push.
local function next_arrival()
  arrival = arrival or struct.pack('>I6', call('HINCRBY', meta, 'arrival', 1))
  return arrival
end

-- Of a queue whose merge is "latest": {the newest of these}, or nothing where a newer one waits, is in flight, or was done;
-- the others stay.
local function newest_of(id, entries)
  local last = entries[#entries]
  if not last then return entries end
  local record, flown, mark = call('HGET', jobs, id), call('HGET', flight, id), marks_of({id})[1]
  local others = {}
  if record and record:byte(1) ~= SEVERAL then others[1] = (of_latest.waiting(id, record)) end
  if flown then
    local _, _, running = read_flight(flown)
    others[#others + 1] = running[#running]:sub(1, PLACE)
  end
  if mark then others[#others + 1] = mark end
  for _, place in ipairs(others) do
    if comes_before(last:sub(1, #place), place) then return {} end
  end
  return {last}
end

local function touch(id)
  local arrival, record = next_arrival(), call('HGET', jobs, id)
  local kind = record:byte(1)
  if kind == SEVERAL or kind == STARTED then
    call('HSET', jobs, id, record:sub(1, 1) .. arrival)
  else
    local place, payload = read_single(record)
    call('HSET', jobs, id, 't' .. arrival .. place .. payload)
  end
end

-- The progress with which the one payload goes on, or nil; it is kept no longer.
local function take_progress(id, entries, kept)
  if not kept then return nil end
  local text = text_of(morgue_errors, kept)
  local _, bytes = drop_errors(morgue_errors, {PROGRESS .. id})
  count_buried(-bytes)
  local elsewhere = call('HEXISTS', jobs, id) + call('HEXISTS', flight, id) > 0 or #morgue_members(id, 2) > 1
  if elsewhere or #entries ~= 1 or text:sub(1, PLACE) ~= entries[1]:sub(1, PLACE) then return nil end
  return text:sub(PLACE + 1)
end

local reply = act_on_each(11, function(id, after)
  local buried_at, kept = call('ZSCORE', morgue, id), call('HMGET', morgue_errors, id, PROGRESS .. id)
  local error = text_of(morgue_errors, kept[1])
  if not buried_at or tonumber(buried_at) > looked_at then return false end
  local old, more = old_entries(morgue_payloads, id, after)
  if has_marks then old = newest_of(id, old) end
  if #old == 0 then return false, more end
  -- Before they may join what waits.
  if has_tracking then revive_items(arrivals_of(old)) end
  local progress = take_progress(id, old, kept[2])
  if progress then
    local entry = old[1]:sub(1, 8) .. next_arrival() .. old[1]:sub(PLACE + 1)
    enter('redriven', {id, old[1]:sub(1, PLACE), entry:sub(1, PLACE)})
    if has_tracking then move_refs(arrivals_of({old[1], entry})) end
    keep_started(merge, id, {entry}, progress, false)
  else
    for _, entry in ipairs(old) do enter('redriven', {id, entry:sub(1, PLACE)}) end
    for _, entry in ipairs(old) do unite(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
  end
  -- Before the id leaves the morgue, as its failures are kept with an error.
  if error and call('HEXISTS', errors, id) == 0 then keep_error(errors, id, error) end
  forget(id, members_of(id, old))
  if not progress then touch(id) end
  if make_due(id) then call('ZREM', retry, id) end
  return true, more
end)
write_journal(token)
return reply
