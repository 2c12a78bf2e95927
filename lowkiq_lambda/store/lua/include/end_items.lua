--! keys refs
--! needs items mark_items in_use
--! gives drop_refs finish_items
-- These entries are gone, or no longer tracked.
local function drop_refs(arrivals)
  if not is_tracked() then return end
  in_parts(arrivals, function(some) call('HDEL', refs, unpack(some)) end)
  if call('EXISTS', refs) == 0 then note_use('tracking', false) end
end

local function finish_items(arrivals, status, message)
  if not is_tracked() then return end
  mark_items(arrivals, status, message)
  drop_refs(arrivals)
end
