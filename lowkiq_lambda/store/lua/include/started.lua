--! keys jobs box meta
--! needs records payloads put flight
--! gives LONGEST_ID started_prefix started_of keep_started drop_started
-- Started jobs: they have saved progress, and have not ended. Their progress is true of the very payloads that they were
-- handed, so both are one record, in flight (flight.lua) and while the id waits: then it is a member of the box, behind a
-- prefix that no payload has. Payloads that are pushed meanwhile wait in the box as ever, and are not merged with it.
local LONGEST_ID = 2 ^ 31

local function started_prefix(id) return struct.pack('>I4', LONGEST_ID + #id) .. id end

-- The entries that the started job was handed, as a record in flight has them; nil if no started job of the id waits.
local function started_of(id)
  local prefix = started_prefix(id)
  local from, to = box_range(prefix)
  local member = call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
  return member and member:sub(#prefix + 1)
end

-- `record`: that of the id in jobs, or false.
local function keep_started(merge, id, entries, progress, record)
  local touched = UNTOUCHED
  if record and is_in_box(record) then
    touched = record:sub(2)
  elseif record then
    local entries_here, own = entries_of(record)
    box_add_all(merge, id, entries_here)
    touched = own
  end
  call('ZADD', box, 0, started_prefix(id) .. handed(entries, progress))
  call('HSET', jobs, id, 'p' .. touched)
  -- Readers count started jobs only where there have been some.
  call('HSET', meta, 'had_started', 1)
end

-- The started job leaves; its record in jobs is that of what waits behind it, which may be nothing.
local function drop_started(id, record, given)
  call('ZREM', box, started_prefix(id) .. given)
  call('HSET', jobs, id, 'm' .. record:sub(2))
end
