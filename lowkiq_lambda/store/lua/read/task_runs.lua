--! keys flight
--! needs flown_arrivals items mark_items
-- Whether one of these ids is in flight with an item of a task, read only.
-- ARGV[4]   task, 12 bytes
-- ARGV[5..] ids
-- Returns {1 or 0}.
for i = 5, #ARGV do
  local record = call('HGET', flight, ARGV[i])
  for _, kept in ipairs(record and refs_at(arrivals_in(record)) or {}) do
    for _, ref in ipairs(each_ref(kept)) do
      if ref:sub(1, TASK) == ARGV[4] then return {1} end
    end
  end
end
return {0}
