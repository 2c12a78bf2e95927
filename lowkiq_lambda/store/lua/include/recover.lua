-- Recovery: what a dead holder left in flight goes back to where it was claimed from, as suspects.
-- Only a lone suspect whose handler had started gets a strike; the third of a single payload buries it.
local STRIKES = 3

local function bury_crashed(id, record, entry, crashed)
  note_failure(id, record, crashed)
  bury(id, entry:sub(1, PLACE), entry:sub(PLACE + 1), crashed)
  drop_suspect(id)
  call('HDEL', trouble, id)
  if call('HEXISTS', jobs, id) == 1 then
    call('ZADD', due, now, id)
    call('ZREM', since, id)
    call('ZREM', retry, id)
  else
    drop_errors(errors, {id})
  end
end

-- Returns the entry that was buried, if the strike was the last.
local function strike(merge, id, record, t, crashed)
  local _, _, entries = read_flight(record)
  if #entries > 1 then
    t.l = math.floor(#entries / 2)
  else
    t.n = (t.n or 0) + 1
    if t.n >= STRIKES then
      -- One that crashed is not like the rest of its group, which can't prove systemic any more.
      if t.g then call('HDEL', groups, t.g) end
      bury_crashed(id, record, entries[1], crashed)
      return entries[1]
    end
  end
  write_trouble(id, t)
  suspect(id, (give_back(merge, id, record)), t.g or '')
end

-- `abandoned`: the holder itself gave up. Returns how many ids were recovered, and {id, entry, ...} of what was buried.
local function recover(merge, limits, crashed, abandoned)
  local kind, left, buried = call('HGET', meta, 'window_kind'), call('HGETALL', flight), {}
  for i = 1, #left, 2 do
    local id, record = left[i], left[i + 1]
    local t = read_trouble(id)
    if abandoned then
      give_back(merge, id, record)
      t.x, t.r = nil, true
      write_trouble(id, t)
    elseif kind == 'LONE' and t.x then
      local entry = strike(merge, id, record, t, crashed)
      if entry then
        buried[#buried + 1] = id
        buried[#buried + 1] = entry
      end
    else
      suspect(id, (give_back(merge, id, record)), t.g or '')
    end
  end
  call('DEL', flight)
  call('HDEL', meta, 'flight_since')
  if #buried > 0 then
    trim_morgue(limits, #buried / 2)
    call('HINCRBY', meta, 'dead', #buried / 2)
  end
  call('HINCRBY', meta, 'recovered', #left / 2)
  return #left / 2, buried
end
