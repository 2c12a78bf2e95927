--! keys jobs box
--! needs records payloads put started flight comes_before supersede
--! gives of_latest
-- merge = "latest": of two payloads of an id the one with the larger place stays, and the other is superseded. So what
-- waits is one payload, in `jobs`, or one started job. Only a repair puts payloads of such a queue into the box.
local of_latest = {}

-- The place of what waits, by the record of its id; and the started job that it is, or nil.
function of_latest.waiting(id, record)
  if record:byte(1) ~= STARTED then return entries_of(record)[1]:sub(1, PLACE), nil end
  local given = started_of(id)
  if not given then error('DAMAGED started job') end
  local entries = read_handed(given, 1)
  return entries[#entries]:sub(1, PLACE), given
end

function of_latest.supersede_waiting(id, place, given)
  if given then call('ZREM', box, started_prefix(id) .. given) end
  supersede(id, {place})
end

-- As put; returns the place of the one that was superseded, if any.
function of_latest.put(id, place, payload, record)
  if record == nil then record = call('HGET', jobs, id) end
  if record and record:byte(1) == SEVERAL then
    call('ZADD', box, 0, box_prefix(id) .. place .. payload)
    return nil
  end
  local waiting, given
  if record then
    waiting, given = of_latest.waiting(id, record)
    if comes_before(place, waiting) then
      supersede(id, {place})
      return place
    end
    of_latest.supersede_waiting(id, waiting, given)
  end
  call('HSET', jobs, id, 's' .. place .. payload)
  return waiting
end

-- A started job comes back: whether it is the latest, and not superseded by what waits.
function of_latest.keeps_started(id, entries, record)
  if not record or record:byte(1) == SEVERAL then return true end
  local waiting, given = of_latest.waiting(id, record)
  if comes_before(entries[#entries]:sub(1, PLACE), waiting) then
    supersede(id, entries)
    return false
  end
  of_latest.supersede_waiting(id, waiting, given)
  call('HDEL', jobs, id)
  return true
end

-- Of payloads in the box the last, {entry}; the others are superseded.
function of_latest.last_of_box(id)
  local prefix = box_prefix(id)
  local from, to = box_range(prefix)
  local entries = {}
  for i, member in ipairs(call('ZRANGE', box, from, to, 'BYLEX')) do entries[i] = member:sub(#prefix + 1) end
  local last = table.remove(entries)
  supersede(id, entries)
  call('ZREMRANGEBYLEX', box, from, to)
  return {last}
end
