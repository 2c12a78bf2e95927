--! keys meta marks_even marks_odd
--! needs shard marks
--! gives raise_marks
local TURN, MOST_MARKS = 86400, 100000

-- The hash whose turn it is.
local function marks_now()
  local turns, since = unpack(call('HMGET', meta, 'marks_turns', 'marks_since'))
  turns, since = tonumber(turns or 0), tonumber(since or now)
  local current = turns % 2 == 0 and marks_even or marks_odd
  if now - since < TURN and call('HLEN', current) < MOST_MARKS then
    if since == now or since > now then call('HSET', meta, 'marks_since', now) end
    return current
  end
  turns = turns + 1
  current = turns % 2 == 0 and marks_even or marks_odd
  call('UNLINK', current)
  call('HSET', meta, 'marks_turns', turns, 'marks_since', now)
  return current
end

-- Returns the marks that these ids have now.
local function raise_marks(ids, scores)
  local marks, fields = marks_of(ids), {}
  for i, id in ipairs(ids) do
    marks[i] = larger(marks[i], scores[i])
    fields[2 * i - 1], fields[2 * i] = id, marks[i]
  end
  call('HSET', marks_now(), unpack(fields))
  return marks
end
