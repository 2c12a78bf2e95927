--! keys suspects groups jobs
--! needs trouble claim payloads
--! gives claim_suspects
-- Suspects go first, each alone; those of a group that proved systemic go together, to be charged and not run. Where
-- batches run side by side, what a first crash left goes together too: most crashes are not a job's fault,
-- and one by one as many as ran side by side would take long. Of an id whose others follow its dead head, one payload is
-- handed out for each chunk of them, and not run (dead_heads.lua).
local function may_run_together(t)
  return t.group == '' and not (t.crashes or t.halvings or t.run_alone or t.rest)
end

-- The first suspects that are like the first of all, {id, ...}, {due_at, ...}.
local function alike(limit, is_like)
  local ids, times = {}, {}
  local listed = call('ZRANGE', suspects, 0, limit - 1, 'WITHSCORES')
  for i = 1, #listed, 2 do
    if is_like(read_trouble(listed[i])) then
      ids[#ids + 1] = listed[i]
      times[#times + 1] = listed[i + 1]
    end
  end
  return ids, times
end

-- An equal payload was pushed since, and it is unknown to which of them, so none follows any more. Only the record of the id
-- has that, and it goes with the last payload that is handed out.
local function free_if_joined(id, t)
  local record = call('HGET', jobs, id)
  if not record then return end
  local touched = record:sub(2)
  if not is_in_box(record) then
    local _, own = entries_of(record)
    touched = own
  end
  if struct.unpack('>I6', touched) <= t.upto then return end
  t.upto = 0
  write_trouble(id, t)
end

local function claim_suspects(merge, head, limits)
  local first = read_trouble(head[1])
  if first.rest then
    free_if_joined(head[1], first)
    local claimed_jobs, oldest = take(merge, {head[1]}, {head[2]}, {payloads = 1, bytes = limits.bytes, chunk = 1})
    return 'REST', claimed_jobs, oldest
  end
  if limits.concurrency and may_run_together(first) then
    local ids, times = alike(limits.ids, may_run_together)
    local claimed_jobs, oldest = take(merge, ids, times, limits)
    return 'TOGETHER', claimed_jobs, oldest
  end
  local group = first.group
  local state = group and group ~= '' and call('HGET', groups, group)
  state = state and cmsgpack.unpack(state)
  if not (state and state.systemic) then
    local claimed_jobs, oldest = take(merge, {head[1]}, {head[2]}, limits)
    return 'LONE', claimed_jobs, oldest
  end
  local ids, times = alike(limits.ids, function(t) return t.group == group end)
  local claimed_jobs, oldest = take(merge, ids, times, {payloads = limits.ids, bytes = limits.bytes, chunk = limits.chunk})
  return 'CHARGE', claimed_jobs, oldest, state.error
end

