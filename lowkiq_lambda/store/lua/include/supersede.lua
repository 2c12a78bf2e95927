--! keys meta
--! with tracking mark_items end_items
--! with headers drop_headers
-- Entries that never run, as a newer one of their id stands for them.
local function supersede(entries)
  if #entries == 0 then return end
  call('HINCRBY', meta, 'superseded', #entries)
  if has_tracking then finish_items(arrivals_of(entries), 's') end
  if has_headers then drop_headers_of(entries) end
end
