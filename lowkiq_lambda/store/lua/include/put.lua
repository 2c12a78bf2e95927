--! keys jobs box seen
--! needs records comes_before
--! with tracking join_refs
--! with headers join_headers
--! with journalling journalling
--! gives later arrival_of box_prefix box_range seen_field preferred box_add forget_seen box_remove read_single put
-- Merging: one payload into what waits under its id.

local function later(a, b) return comes_before(a, b) and b or a end

local function arrival_of(place) return place:sub(9, PLACE) end

local function box_prefix(id) return struct.pack('>I4', #id) .. id end

-- No score that is accepted starts with the byte 255, so this range is exactly the id's members.
local function box_range(prefix) return '[' .. prefix, '(' .. prefix .. '\255' end

-- A digest has 40 bytes, what stands for itself has fewer: the two never meet.
local function seen_field(prefix, payload)
  return prefix .. (#payload < 40 and payload or redis.sha1hex(payload))
end

-- Of two places of equal payloads the one that is kept, and the other.
local function preferred(merge, a, b)
  if comes_before(a, b) == (merge == 'max') then return b, a end
  return a, b
end

local function box_add(merge, prefix, place, payload)
  call('ZADD', box, 0, prefix .. place .. payload)
  if merge ~= 'never' then call('HSET', seen, seen_field(prefix, payload), place) end
end

local function forget_seen(merge, prefix, place, payload)
  if merge == 'never' then return end
  local field = seen_field(prefix, payload)
  if call('HGET', seen, field) == place then call('HDEL', seen, field) end
end

local function box_remove(merge, prefix, place, payload)
  call('ZREM', box, prefix .. place .. payload)
  forget_seen(merge, prefix, place, payload)
end

local function read_single(record)
  local skip = record:byte(1) == TOUCHED and 7 or 1
  if #record < skip + PLACE or (skip == 1 and record:sub(1, 1) ~= 's') then error('DAMAGED waiting record') end
  local touched = skip == 7 and record:sub(2, 7) or UNTOUCHED
  return record:sub(skip + 1, skip + PLACE), record:sub(skip + PLACE + 1), touched
end

-- `mark`: the record of the id, which says that there are several.
local function put_in_box(merge, id, mark, place, payload)
  local prefix, touched = box_prefix(id), mark:sub(2)
  local known = merge ~= 'never' and call('HGET', seen, seen_field(prefix, payload))
  if known and call('ZSCORE', box, prefix .. known .. payload) then
    local kept, gone = preferred(merge, place, known)
    if kept ~= known then
      call('ZREM', box, prefix .. known .. payload)
      box_add(merge, prefix, kept, payload)
    end
    local last = later(touched, later(arrival_of(place), arrival_of(known)))
    if last ~= touched then call('HSET', jobs, id, mark:sub(1, 1) .. last) end
    if has_tracking then join_refs(kept, gone) end
    if has_headers then join_headers(kept, gone) end
    if has_journalling then trace('joined', {id, kept, gone}) end
    return gone, kept
  end
  box_add(merge, prefix, place, payload)
end

-- Unites one payload with what waits under the id; the caller sees to due, retry and the rest. `record`: that of the
-- id in jobs, where it is known. Returns the places, gone and kept, of two that became one.
local function put(merge, id, place, payload, record)
  if record == nil then record = call('HGET', jobs, id) end
  local kind = record and record:byte(1)
  if not record then
    call('HSET', jobs, id, 's' .. place .. payload)
  elseif kind == SEVERAL or kind == STARTED then
    return put_in_box(merge, id, record, place, payload)
  else
    local old_place, old_payload, touched = read_single(record)
    if merge ~= 'never' and old_payload == payload then
      touched = later(touched, later(arrival_of(place), arrival_of(old_place)))
      local kept, gone = preferred(merge, place, old_place)
      call('HSET', jobs, id, 't' .. touched .. kept .. payload)
      if has_tracking then join_refs(kept, gone) end
      if has_headers then join_headers(kept, gone) end
      if has_journalling then trace('joined', {id, kept, gone}) end
      return gone, kept
    end
    box_add(merge, box_prefix(id), old_place, old_payload)
    call('HSET', jobs, id, 'm' .. touched)
    put_in_box(merge, id, 'm' .. touched, place, payload)
  end
end
