--! keys jobs box since retry errors meta expiries
--! needs records payloads put page morgue put_back retry_counts trouble suspicion forget_errors keep_error texts wait shard far
--! needs supersede journal
--! with tracking mark_items
--! gives followers block_head follow_head end_rest
-- The fate of an id whose oldest payload has failed for the last time, if the worker does not let the others go on
-- (`Worker.dead_head`): 'block', which keeps it at the head of the id; 'drop', which kills with it all that waited
-- then; 'latest', which supersedes all of that but the newest. A call touches CHUNK payloads. An id with more of them
-- is a suspect: its troubles have `rest`, one of these two words, `upto`, the arrival number of the shard at that
-- time, and `keep`, that of the newest; and claims hand it out, not to be run, until no payload of it is left.
local CHUNK, CHUNK_BYTES, followed = 1000, 4 * 1024 * 1024, 0

-- Payloads that died here, beside heads.
local function followers() return followed end

local function block_head(merge, id, t, entries, retry_count, progress)
  enter('blocked', {id})
  -- An operator who has it tried again wants it done, as one who requeues a dead payload does.
  if has_expiry then call('HDEL', expiries, entries[1]:sub(9, PLACE)) end
  put_back(merge, id, t, entries, FAR, retry_count + 1, progress, has_tracking and REASON.BLOCKED)
  local head = redis.sha1hex(entries[1]:sub(PLACE + 1))
  write_trouble(id, {retry_counts = t.retry_counts, abandoned = t.abandoned, blocked_since = now, head = head})
end

local function kill_with_head(merge, id, entries, text)
  if has_tracking then mark_items(arrivals_of(entries), 'x', REASON.WITH_HEAD) end
  for _, entry in ipairs(entries) do
    kill(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), text, nil, 'dead')
  end
  followed = followed + #entries
end

local function newest_waiting(id)
  local record = call('HGET', jobs, id)
  if not record then return nil end
  if not is_in_box(record) then
    local entries = entries_of(record)
    return number_of_arrival(entries[#entries])
  end
  local prefix = box_prefix(id)
  local from, to = box_range(prefix)
  local last = call('ZRANGE', box, to, from, 'BYLEX', 'REV', 'LIMIT', 0, 1)[1]
  return last and number_of_arrival(last:sub(#prefix + 1))
end

-- Takes a chunk of what waits and follows the head, {entry, ...}; and whether there may be more.
local function take_followers(merge, id, t, most)
  local taken, record = {}, call('HGET', jobs, id)
  local function follows(entry)
    local arrival = number_of_arrival(entry)
    return arrival <= t.upto and arrival ~= t.keep
  end
  if not record then return taken, false end
  if not is_in_box(record) then
    local _, touched = entries_of(record)
    if struct.unpack('>I6', touched) > t.upto then return taken, false end
    local left, allowed = nil, most
    taken, left = payloads.parted(record, function(entry)
      local goes = allowed > 0 and follows(entry)
      if goes then allowed = allowed - 1 end
      return goes
    end)
    if left then call('HSET', jobs, id, left) else call('HDEL', jobs, id) end
    return taken, left and allowed == 0
  end
  -- An equal payload was pushed since, and it is unknown to which of them: all that are left go on.
  if struct.unpack('>I6', record:sub(2)) > t.upto then return taken, false end
  local prefix, after, left = box_prefix(id), '', CHUNK_BYTES
  repeat
    local entries, _, more = page(box, id, after, most - #taken, left)
    for _, entry in ipairs(entries) do
      if follows(entry) then
        taken[#taken + 1], left = entry, left - #entry
        box_remove(merge, prefix, entry:sub(1, PLACE), entry:sub(PLACE + 1))
      end
    end
    after = more
  until not after or #taken >= most or left < 1
  if record:byte(1) == SEVERAL and #page(box, id, '', 1, 1) == 0 then call('HDEL', jobs, id) end
  return taken, after ~= nil
end

-- Only payloads that came since are left, and the newest, if it is kept: these start anew.
local function end_following(id, t)
  drop_suspect(id)
  call('ZREM', since, id)
  if call('HEXISTS', jobs, id) == 0 then
    wait_no_more(id)
    call('ZREM', retry, id)
    forget_errors({id})
    return write_trouble(id, {})
  end
  local counts, kept = counts_of(id, t, true), {}
  if t.keep then kept[t.keep] = counts[t.keep] else forget_errors({id}) end
  local left = {abandoned = t.abandoned}
  note_counts(id, left, kept)
  write_trouble(id, left)
  wait(id, now)
end

-- A chunk of those that follow the head, of which `before` were taken in this call.
local function follow_head(merge, id, t, before)
  local text = error_of(errors, id) or ''
  local taken, more = take_followers(merge, id, t, math.max(1, CHUNK - before))
  if t.rest == 'drop' then kill_with_head(merge, id, taken, text) else supersede(id, taken) end
  if not more then return end_following(id, t) end
  wait(id, now)
  call('ZREM', since, id)
  suspect(id, t, now)
end

-- Its head is dead; `entries` were delivered with that.
local function end_rest(merge, id, t, entries, word, text)
  local left = {rest = word, upto = tonumber(call('HGET', meta, 'arrival')), retry_counts = t.retry_counts}
  local count = #entries
  if word == 'drop' then
    kill_with_head(merge, id, entries, text)
  else
    local newest = table.remove(entries)
    supersede(id, entries)
    if newest then
      left.abandoned = t.abandoned
      put_back(merge, id, left, {newest}, now, -1)
    end
    left.keep = newest_waiting(id)
  end
  keep_error(errors, id, text)
  follow_head(merge, id, left, count)
end
