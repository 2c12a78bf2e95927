--! keys meta headers_even headers_odd expiries
--! with tracking mark_items end_items
--! with journalling journalling
--! gives supersede
-- Entries of an id that never run, as a newer one stands for them: {entry or place, ...}. `entered`: they are in the journal.
local function supersede(id, entries, entered)
  if #entries == 0 then return end
  call('HINCRBY', meta, 'superseded', #entries)
  if has_tracking then finish_items(arrivals_of(entries), 's') end
  for _, entry in ipairs(entries) do
    for _, key in ipairs({headers_even, headers_odd}) do call('HDEL', key, entry:sub(9, 14)) end
    if has_expiry then call('HDEL', expiries, entry:sub(9, 14)) end
    if has_journalling and not entered then trace('superseded', {id, entry:sub(1, 14)}) end
  end
end
