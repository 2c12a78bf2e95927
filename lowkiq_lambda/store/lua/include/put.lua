--! keys jobs box seen
--! needs records payloads
--! with tracking join_refs
--! with headers join_headers
--! with expiry join_expiries
--! with journalling journalling
--! gives box_prefix box_range seen_field box_add_all forget_seen box_remove note_joined put
-- Merging: one payload into what waits under its id.

local function box_prefix(id) return struct.pack('>I4', #id) .. id end

-- No score that is accepted starts with the byte 255, so this range is exactly the id's members.
local function box_range(prefix) return '[' .. prefix, '(' .. prefix .. '\255' end

-- A digest has 40 bytes, what stands for itself has fewer: the two never meet.
local function seen_field(prefix, payload)
  return prefix .. (#payload < 40 and payload or redis.sha1hex(payload))
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

-- Payloads that lay in a record, as they are too many or too long for it.
local function box_add_all(merge, id, entries)
  local prefix, members, fields = box_prefix(id), {}, {}
  for i, entry in ipairs(entries) do
    members[2 * i - 1], members[2 * i] = 0, prefix .. entry
    if merge ~= 'never' then
      fields[2 * i - 1], fields[2 * i] = seen_field(prefix, entry:sub(PLACE + 1)), entry:sub(1, PLACE)
    end
  end
  call('ZADD', box, unpack(members))
  if #fields > 0 then call('HSET', seen, unpack(fields)) end
end

local function note_joined(id, kept, gone)
  if has_tracking then join_refs(kept, gone) end
  if has_headers then join_headers(kept, gone) end
  if has_expiry then join_expiries(kept, gone) end
  if has_journalling then trace('joined', {id, kept, gone}) end
end

-- `mark`: the record of the id, which says that there are several.
local function put_in_box(merge, id, mark, place, payload)
  local prefix, touched = box_prefix(id), mark:sub(2)
  local known = merge ~= 'never' and call('HGET', seen, seen_field(prefix, payload))
  if known and call('ZSCORE', box, prefix .. known .. payload) then
    local kept, gone = payloads.preferred(merge, place, known)
    if kept ~= known then
      call('ZREM', box, prefix .. known .. payload)
      box_add(merge, prefix, kept, payload)
    end
    local last = payloads.later(touched, payloads.later(payloads.arrival_of(place), payloads.arrival_of(known)))
    if last ~= touched then call('HSET', jobs, id, mark:sub(1, 1) .. last) end
    note_joined(id, kept, gone)
    return gone, kept
  end
  box_add(merge, prefix, place, payload)
end

-- Unites one payload with what waits under the id; the caller sees to due, retry and the rest. `record`: that of the
-- id in jobs, where it is known. Returns the places, gone and kept, of two that became one.
local function put(merge, id, place, payload, record)
  if record == nil then record = call('HGET', jobs, id) end
  if not record then
    call('HSET', jobs, id, 's' .. place .. payload)
  elseif is_in_box(record) then
    return put_in_box(merge, id, record, place, payload)
  else
    local entries, touched = entries_of(record)
    local latest, gone, kept = payloads.join(merge, entries, touched, place, payload)
    local joined = record_of(entries, latest)
    if not joined then box_add_all(merge, id, entries) end
    call('HSET', jobs, id, joined or 'm' .. latest)
    if gone then note_joined(id, kept, gone) end
    return gone, kept
  end
end
