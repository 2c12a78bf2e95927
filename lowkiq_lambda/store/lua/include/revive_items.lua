--! keys rows refs
--! needs items mark_items
--! gives revive_items move_refs
-- Items that were dead wait again. Their task may have looked complete: how often that has happened is counted for it,
-- under 'v' and the task, which no ref is.
local function revive_items(arrivals)
  if not is_tracked() then return end
  local kept = refs_at(arrivals)
  for _, one in ipairs(kept) do
    for _, ref in ipairs(each_ref(one)) do call('HINCRBY', rows, 'v' .. ref:sub(1, TASK), 1) end
  end
  mark_kept(kept, 'e', REASON.REQUEUED)
end

-- An entry gets another arrival number: {old, new}.
local function move_refs(arrivals)
  local kept = is_tracked() and call('HGET', refs, arrivals[1])
  if not kept then return end
  call('HSET', refs, arrivals[2], kept)
  call('HDEL', refs, arrivals[1])
end
