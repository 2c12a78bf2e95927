-- Claiming: what is due moves into flight, which is empty before, so no id is ever in flight twice.
-- LIMITS = {ids, payloads, bytes}; the first id always gets at least one payload.

-- The first payloads of an id in the box that fit, {entry, ...}, their bytes, and whether there are more.
local function slice_of(id, most, bytes, passes)
  local prefix, step = box_prefix(id), reading_step(bytes)
  local from, to = box_range(prefix)
  local entries, size = {}, 0
  while #entries < most do
    local members = call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, math.min(step, most - #entries))
    if #members == 0 then return entries, size, false end
    for _, member in ipairs(members) do
      local entry = member:sub(#prefix + 1)
      if size + #entry > bytes and (#entries > 0 or not passes) then return entries, size, true end
      size = size + #entry
      entries[#entries + 1] = entry
      from = '(' .. member
    end
  end
  return entries, size, #call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, 1) > 0
end

-- These entries are the first of the id, so that one command removes them all.
local function take_slice(merge, id, entries)
  local prefix = box_prefix(id)
  call('ZREMRANGEBYLEX', box, '[' .. prefix, '[' .. prefix .. entries[#entries])
  for _, entry in ipairs(entries) do forget_seen(merge, prefix, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
end

-- Between its slices an id queues behind what is due now; since keeps its own time for the lag.
local function leave_rest(id, perform_in)
  call('ZADD', due, now, id)
  call('ZADD', since, 'LT', perform_in, id)
end

local function troubles_of(ids)
  local found = {}
  if exists(trouble) then
    for i, packed in ipairs(call('HMGET', trouble, unpack(ids))) do
      if packed then
        found[#found + 1] = ids[i]
        found[#found + 1] = packed
      end
    end
  end
  return found
end

local function numbers_of(key, command, ids)
  if not exists(key) then return {} end
  return call(command, key, unpack(ids))
end

-- A small hash is a list to Redis, so that many look-ups by name take quadratic time, and so does filling it. One
-- long value makes a table of it for good; NO_ID, which is no UTF-8, is nobody's id.
local MANY, NO_ID, LONG = 64, '\255', string.rep(' ', 128)

local function set_many(key, fields)
  call('HSET', key, NO_ID, LONG, unpack(fields))
  call('HDEL', key, NO_ID)
end

-- No more of them than could be needed to fill the bytes.
local function read_records(ids, bytes)
  if #ids >= MANY then set_many(jobs, {}) end
  local records, size, step = {}, 0, reading_step(bytes)
  if step >= #ids then return call('HMGET', jobs, unpack(ids)) end
  for from = 1, #ids, step do
    if size > bytes then break end
    local to = math.min(#ids, from + step - 1)
    for i, record in ipairs(call('HMGET', jobs, unpack(ids, from, to))) do
      size = size + (record and #record or 0)
      records[from + i - 1] = record
    end
  end
  return records
end

-- What is now in flight, the first of due or else suspects, waits no more. By rank costs a fraction of by name.
local function leave_due(ids, first)
  if first then call('ZREMRANGEBYRANK', due, 0, #ids - 1) else call('ZREM', due, unpack(ids)) end
  if exists(since) then call('ZREM', since, unpack(ids)) end
end

-- Somebody deleted, or a cache evicted, what waited under the id: the shard goes on without it.
local function drop_orphan(id)
  call('HDEL', jobs, id)
  for _, key in ipairs({due, since, retry, suspects}) do call('ZREM', key, id) end
end

-- Moves these ids (`first`: they are the first of due; else suspects) into flight; returns {id, record, ...} of those
-- that fitted, and since when the oldest waited; nil where nothing was there.
local function take(merge, ids, times, limits, first)
  local records = read_records(ids, limits[3])
  local counts, originals = numbers_of(retry, 'ZMSCORE', ids), numbers_of(since, 'ZMSCORE', ids)
  local window, whole, n, left, bytes, oldest = {}, {}, 0, limits[2], limits[3], math.huge
  for i, record in ipairs(records) do
    local id, perform_in = ids[i], tonumber(originals[i] or times[i])
    local count, value = counts[i] and tonumber(counts[i]) or -1
    if left < 1 then break end
    if not record then
      drop_orphan(id)
    elseif record:byte(1) == SEVERAL then
      local most = math.min(left, read_trouble(id).l or left)
      local entries, size, more = slice_of(id, most, bytes, n == 0)
      if #entries == 0 then
        if n == 0 then drop_orphan(id) end
        break
      end
      take_slice(merge, id, entries)
      left, bytes = left - #entries, bytes - size
      value = flight_record(perform_in, count, entries)
      if more then leave_rest(id, perform_in) else whole[#whole + 1] = id end
    else
      local single = untouched(record)
      left, bytes = left - 1, bytes - (#single - 1)
      if bytes < 0 and n > 0 then break end
      value = struct.pack('>dd', perform_in, count) .. single
      whole[#whole + 1] = id
    end
    if value then
      n = n + 2
      window[n - 1], window[n] = id, value
      if counts[i] then call('ZREM', retry, id) end
      if perform_in < oldest then oldest = perform_in end
    end
  end
  if n == 0 then return nil end
  if #whole > 0 then
    call('HDEL', jobs, unpack(whole))
    leave_due(whole, first and 2 * #whole == #window)
  end
  if #ids >= MANY then set_many(flight, window) else call('HSET', flight, unpack(window)) end
  return window, oldest
end

-- Suspects go first, each alone; those of a group that proved systemic go together, to be charged and not run.
local function claim_suspects(merge, head, limits)
  local group = read_trouble(head[1]).g
  local state = group and group ~= '' and call('HGET', groups, group)
  state = state and cmsgpack.unpack(state)
  if not (state and state.systemic) then
    local window, oldest = take(merge, {head[1]}, {head[2]}, {1, limits[2], limits[3]})
    return 'LONE', window, oldest
  end
  local ids, times = {}, {}
  local listed = call('ZRANGE', suspects, 0, limits[1] - 1, 'WITHSCORES')
  for i = 1, #listed, 2 do
    if read_trouble(listed[i]).g == group then
      ids[#ids + 1] = listed[i]
      times[#times + 1] = listed[i + 1]
    end
  end
  local window, oldest = take(merge, ids, times, {limits[1], limits[1], limits[3]})
  return 'CHARGE', window, oldest, state.error
end

-- Returns {kind, {id, record, ...}, {id, error, ...}, {id, trouble, ...}, the error to charge or ''}, or nil.
local function window_reply(kind, window, charge)
  if not exists(errors) and not exists(trouble) then return {kind, window, {}, {}, charge or ''} end
  local ids, texts = {}, {}
  for i = 1, #window, 2 do ids[#ids + 1] = window[i] end
  for i, text in ipairs(numbers_of(errors, 'HMGET', ids)) do
    if text then
      texts[#texts + 1] = ids[i]
      texts[#texts + 1] = text
    end
  end
  return {kind, window, texts, troubles_of(ids), charge or ''}
end

local function claim(merge, limits)
  local kind, window, oldest, charge = 'DUE'
  local head = call('ZRANGE', suspects, 0, 0, 'WITHSCORES')
  if #head > 0 then
    kind, window, oldest, charge = claim_suspects(merge, head, limits)
  else
    local listed = call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limits[1], 'WITHSCORES')
    if #listed == 0 then return nil end
    local ids, times = {}, {}
    for i = 1, #listed / 2 do ids[i], times[i] = listed[2 * i - 1], listed[2 * i] end
    window, oldest = take(merge, ids, times, limits, true)
  end
  if not window then return nil end
  call('HSET', meta, 'window_kind', kind, 'window_charge', charge or '', 'flight_since', oldest)
  return window_reply(kind, window, charge)
end

-- The window in flight once more, for a call whose answer was lost.
local function window_again()
  if not exists(flight) then return nil end
  local kind, charge = unpack(call('HMGET', meta, 'window_kind', 'window_charge'))
  return window_reply(kind, call('HGETALL', flight), charge)
end
