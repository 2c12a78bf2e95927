-- Claiming: what is due moves into flight, which is empty before, so no id is ever in flight twice.
-- LIMITS = {ids, payloads, bytes}; the first id always gets at least one payload.

-- How many payloads may be read at once within a number of bytes, were each as large as the largest ever pushed.
local function reading_step(bytes)
  local max_len = math.max(1, tonumber(call('HGET', meta, 'max_len') or 1))
  return math.max(1, math.floor(bytes / max_len))
end

-- The first payloads of an id in the box: {entry, ...}, their bytes, and whether there are more.
local function slice_of(id, most, bytes)
  local prefix, step = box_prefix(id), reading_step(bytes)
  local from, to = box_range(prefix)
  local entries, size = {}, 0
  while #entries < most do
    local members = call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, math.min(step, most - #entries))
    if #members == 0 then return entries, size, false end
    for _, member in ipairs(members) do
      if #entries > 0 and size + #member > bytes then return entries, size, true end
      size = size + #member
      entries[#entries + 1] = member:sub(#prefix + 1)
      from = '(' .. member
    end
  end
  return entries, size, #call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, 1) > 0
end

local function take_slice(merge, id, entries)
  local prefix = box_prefix(id)
  for _, entry in ipairs(entries) do box_remove(merge, prefix, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
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

local function read_records(ids, bytes)
  local records, size, step = {}, 0, reading_step(bytes)
  for from = 1, #ids, step do
    local to = math.min(#ids, from + step - 1)
    for i, record in ipairs(call('HMGET', jobs, unpack(ids, from, to))) do
      size = size + #record
      if #records > 0 and size > bytes then return records end
      records[from + i - 1] = record
    end
  end
  return records
end

-- Moves these ids (the first of due, or suspects) into flight; returns {id, record, ...} of those that fitted.
local function take(merge, ids, times, limits)
  local records = read_records(ids, limits[3])
  local counts, originals = numbers_of(retry, 'ZMSCORE', ids), numbers_of(since, 'ZMSCORE', ids)
  local window, whole, left, bytes = {}, {}, limits[2], limits[3]
  for i, record in ipairs(records) do
    local id, perform_in = ids[i], tonumber(originals[i] or times[i])
    local count, value = tonumber(counts[i] or -1)
    if left < 1 or (bytes < 1 and i > 1) then break end
    if record:sub(1, 1) == 'm' then
      local most = math.min(left, read_trouble(id).l or left)
      local entries, size, more = slice_of(id, most, bytes)
      take_slice(merge, id, entries)
      left, bytes = left - #entries, bytes - size
      value = flight_record(perform_in, count, entries)
      if more then leave_rest(id, perform_in) else whole[#whole + 1] = id end
    else
      local place, payload = read_single(record)
      left, bytes = left - 1, bytes - #payload
      value = struct.pack('>dd', perform_in, count) .. 's' .. place .. payload
      whole[#whole + 1] = id
    end
    window[#window + 1] = id
    window[#window + 1] = value
  end
  if #whole > 0 then
    call('HDEL', jobs, unpack(whole))
    call('ZREM', due, unpack(whole))
    if exists(since) then call('ZREM', since, unpack(whole)) end
  end
  for i = 1, #window, 2 do
    if counts[(i + 1) / 2] then call('ZREM', retry, window[i]) end
  end
  call('HSET', flight, unpack(window))
  return window
end

-- Suspects go first, each alone; those of a group that proved systemic go together, to be charged and not run.
local function claim_suspects(merge, head, limits)
  local group = read_trouble(head[1]).g
  local state = group and group ~= '' and call('HGET', groups, group)
  state = state and cmsgpack.unpack(state)
  if not (state and state.systemic) then
    return 'LONE', take(merge, {head[1]}, {head[2]}, {1, limits[2], limits[3]})
  end
  local ids, times = {}, {}
  local listed = call('ZRANGE', suspects, 0, limits[1] - 1, 'WITHSCORES')
  for i = 1, #listed, 2 do
    if read_trouble(listed[i]).g == group then
      ids[#ids + 1] = listed[i]
      times[#times + 1] = listed[i + 1]
    end
  end
  return 'CHARGE', take(merge, ids, times, {limits[1], limits[1], limits[3]}), state.error
end

-- Returns {kind, {id, record, ...}, {id, error, ...}, {id, trouble, ...}, the error to charge or ''}, or nil.
local function window_reply(kind, window, charge)
  local ids = {}
  for i = 1, #window, 2 do ids[#ids + 1] = window[i] end
  local texts = {}
  for i, text in ipairs(numbers_of(errors, 'HMGET', ids)) do
    if text then
      texts[#texts + 1] = ids[i]
      texts[#texts + 1] = text
    end
  end
  return {kind, window, texts, troubles_of(ids), charge or ''}
end

local function claim(merge, limits)
  local kind, window, charge = 'DUE'
  local head = call('ZRANGE', suspects, 0, 0, 'WITHSCORES')
  if #head > 0 then
    kind, window, charge = claim_suspects(merge, head, limits)
  else
    local listed = call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limits[1], 'WITHSCORES')
    if #listed == 0 then return nil end
    local ids, times = {}, {}
    for i = 1, #listed, 2 do
      ids[#ids + 1] = listed[i]
      times[#times + 1] = listed[i + 1]
    end
    window = take(merge, ids, times, limits)
  end
  local oldest = struct.unpack('>d', window[2])
  call('HSET', meta, 'window_kind', kind, 'window_charge', charge or '', 'flight_since', oldest)
  return window_reply(kind, window, charge)
end

-- The window in flight once more, for a call whose answer was lost.
local function window_again()
  if not exists(flight) then return nil end
  local kind, charge = unpack(call('HMGET', meta, 'window_kind', 'window_charge'))
  return window_reply(kind, call('HGETALL', flight), charge)
end
