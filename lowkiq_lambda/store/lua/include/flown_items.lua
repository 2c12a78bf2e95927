--! needs items mark_items flown_arrivals
--! gives mark_flown
-- The items of records in flight.

-- Its items run. Returns the ids that have any, {id, ...}; nil without one.
local function mark_flown(claimed_jobs)
  if not is_tracked() then return nil end
  local arrivals, whose = arrivals_flown(claimed_jobs)
  local kept, ids = refs_at(arrivals), {}
  for i, one in ipairs(kept) do
    if one and ids[#ids] ~= whose[i] then ids[#ids + 1] = whose[i] end
  end
  mark_kept(kept, 'r')
  return ids[1] and ids
end
