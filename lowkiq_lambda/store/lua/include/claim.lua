--! keys due jobs since retry errors trouble suspects flight meta lanes
--! needs reading_step records shard
--! with tenants take_fairly serve leave_lines
--! with tracking flown_items
--! with headers claim_entries
--! with expiry claim_entries
--! with journalling trace_claim
--! with requests requests
--! rarely claim_reply chunks retry_counts suspects
--! gives take claim
-- Claiming: what is due moves into flight, which is empty before, so no id is ever in flight twice.
-- `limits`: what one claim may carry, as the caller packs it (ClaimLimits in store/shard/session.py): `ids`, `payloads` and
-- `bytes`; and if they are set `chunk`, the most payloads of one id; `concurrency`, how many batches run side by side; and
-- `tenant_rate`, {ids, seconds}. The first id always gets at least one payload.

-- A small hash is a list to Redis, so that many look-ups by name take quadratic time, and so does filling it. One
-- long value makes a table of it for good; NO_ID is not UTF-8, so no job has it as its id.
local MANY, NO_ID, LONG = 64, '\255', string.rep(' ', 128)

local function set_many(key, fields)
  call('HSET', key, NO_ID, LONG, unpack(fields))
  call('HDEL', key, NO_ID)
end

-- All that waits, for ids that are as many: cheaper than by name.
local function read_all(ids)
  local records, found = {}, {}
  local pairs_of = call('HGETALL', jobs)
  for i = 1, #pairs_of, 2 do found[pairs_of[i]] = pairs_of[i + 1] end
  for i, id in ipairs(ids) do records[i] = found[id] or false end
  return records
end

-- No more of them than could be needed to fill the bytes; and whether the ids are as many as all that wait.
local function read_records(ids, bytes)
  local step, all = reading_step(bytes), call('HLEN', jobs) == #ids
  if all and step >= #ids then return read_all(ids), all end
  if #ids >= MANY then set_many(jobs, {}) end
  if step >= #ids then return call('HMGET', jobs, unpack(ids)), all end
  local records, size = {}, 0
  for from = 1, #ids, step do
    if size > bytes then break end
    local to = math.min(#ids, from + step - 1)
    for i, record in ipairs(call('HMGET', jobs, unpack(ids, from, to))) do
      -- Of a few payloads no more than the first may be taken.
      local kind = record and record:byte(1)
      local at = kind == kinds.few and 5 or kind == kinds.few_touched and 11
      size = size + (at and #record > at + 2 and struct.unpack('>I4', record, at) or record and #record or 0)
      records[from + i - 1] = record
    end
  end
  return records, all
end

-- Removes ids that are now in flight from what waits. Removing by rank, and all at once, costs a fraction of removing by name.
local function leave(ids, first, all, plain)
  if lanes then leave_lines(ids) end
  if all then call('DEL', jobs) else call('HDEL', jobs, unpack(ids)) end
  if first then call('ZREMRANGEBYRANK', due, 0, #ids - 1) else call('ZREM', due, unpack(ids)) end
  if not plain then call('ZREM', since, unpack(ids)) end
end

-- Whether all the payloads of a record of several can be taken as they lie there.
local function fits(record, most, bytes)
  if #record > bytes or #record < 4 then return false end
  local count, last = struct.unpack('>BI2', record, 2)
  return count <= most and last + PLACE - 1 <= #record
end

-- Moves these ids (`first`: they are the first of due; else suspects) into flight; returns {id, record, ...} of those
-- that fitted, and since when the oldest waited; nil where nothing was there. `plain`: nothing is known of any id but
-- what waits under it.
local function take(merge, ids, times, limits, first, plain)
  local records, all = read_records(ids, limits.bytes)
  local counts, originals = {}, {}
  if not plain then
    counts, originals = rarely().values_of(retry, 'ZMSCORE', ids), rarely().values_of(since, 'ZMSCORE', ids)
  end
  local claimed_jobs, whole, n, left, bytes, oldest = {}, {}, 0, limits.payloads, limits.bytes, math.huge
  for i, record in ipairs(records) do
    local id, due_at = ids[i], tonumber(originals[i] or times[i])
    local count, kind, value = counts[i] and tonumber(counts[i]) or -1, record and record:byte(1)
    if left < 1 then break end
    if not record then
      -- The id is due and has no payloads. The shard is repaired, and the payloads that were taken before must not be lost.
      if n == 0 then error('DAMAGED id without payloads') end
      break
    elseif kind == kinds.single or (kind == kinds.touched and #record > 7 + PLACE) then
      local single = kind == kinds.single and record or 's' .. record:sub(8)
      left, bytes = left - 1, bytes - (#single - 1)
      if bytes < 0 and n > 0 then break end
      if counts[i] then
        local is_sound, known = pcall(rarely().take_count, id, count, single:sub(2))
        if not is_sound and n == 0 then error(known) end
        if not is_sound then break end
        count = known
      end
      value = struct.pack('>dd', due_at, count) .. single
      whole[#whole + 1] = id
    elseif plain and kind == kinds.few and fits(record, math.min(left, limits.chunk or left), bytes) then
      local taken, last = struct.unpack('>BI2', record, 2)
      left, bytes = left - taken, bytes - (#record - 4 * taken)
      -- As it lies in the record, and the length of the last before it.
      value = struct.pack('>dd', due_at, count) .. 'm' .. record:sub(5, last - 1)
        .. struct.pack('>I4', #record - last + 1) .. record:sub(last)
      whole[#whole + 1] = id
    else
      local taken, size, more
      if kind == SEVERAL then
        value, taken, size, more = rarely().take_several(merge, id, due_at, count, limits.chunk, left, bytes, n == 0)
      elseif kind == STARTED then
        value, taken, size, more = rarely().take_started(id, record, due_at, count, left, bytes, n == 0)
      else
        value, taken, size, more = rarely().take_few(id, record, due_at, count, limits.chunk, left, bytes, n == 0)
      end
      if not value then
        if n == 0 then error('DAMAGED id without payloads') end
        break
      end
      left, bytes = left - taken, bytes - size
      if not more then whole[#whole + 1] = id end
    end
    if value then
      n = n + 2
      claimed_jobs[n - 1], claimed_jobs[n] = id, value
      if due_at < oldest then oldest = due_at end
    end
  end
  if n == 0 then return nil end
  if #whole > 0 then leave(whole, first and 2 * #whole == n, all and #whole == #ids, plain) end
  if #ids >= MANY then set_many(flight, claimed_jobs) else call('HSET', flight, unpack(claimed_jobs)) end
  return claimed_jobs, oldest
end

-- Returns {kind, {id, record, ...}, {id, error, ...}, {id, trouble, ...}, the error to charge or ''}, and where some ids are
-- tracked these, {id, ...}; or nil.
local function claim(merge, limits)
  local plain = call('EXISTS', since, retry, errors, trouble, suspects) == 0
  local kind, claimed_jobs, oldest, charge = 'DUE'
  local head = plain and {} or call('ZRANGE', suspects, 0, 0, 'WITHSCORES')
  if #head > 0 then
    kind, claimed_jobs, oldest, charge = rarely().claim_suspects(merge, head, limits)
  else
    local ids, times = {}, {}
    if lanes then
      ids, times = take_fairly(limits, {}, 0)
    else
      local listed = call('ZRANGE', due, '-inf', due_by, 'BYSCORE', 'LIMIT', 0, limits.ids, 'WITHSCORES')
      for i = 1, #listed / 2 do ids[i], times[i] = listed[2 * i - 1], listed[2 * i] end
    end
    if #ids == 0 then return nil end
    -- Suspects come first.
    if has_requests and requested.end_pauses(ids) then return claim(merge, limits) end
    claimed_jobs, oldest = take(merge, ids, times, limits, not lanes, plain)
  end
  if not claimed_jobs then return nil end
  if lanes then serve(claimed_jobs, limits.tenant_rate) end
  if has_journalling then trace_claim(claimed_jobs) end
  call('HSET', meta, 'claim_kind', kind, 'claim_charge', charge or '', 'flight_since', oldest)
  local tracked = has_tracking and mark_flown(claimed_jobs) or nil
  local reply = plain and {kind, claimed_jobs, {}, {}, '', tracked} or rarely().claim_reply(kind, claimed_jobs, charge, tracked)
  return (has_headers or has_expiry) and with_what_entries_have(reply) or reply
end
