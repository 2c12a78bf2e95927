--! keys box since suspects errors meta
--! needs records payloads put keep_error
--! gives lies_in add_counts keep_notes note_longest
-- Moves and undos put the row of an id among what waits. They have these steps in common.

-- Whether the entry waits in this record of the id.
local function lies_in(record, id, entry)
  if not record then return false end
  if is_in_box(record) then return call('ZSCORE', box, box_prefix(id) .. entry) ~= false end
  for _, there in ipairs((entries_of(record))) do
    if there == entry then return true end
  end
  return false
end

-- Of a payload that is here, too, the larger count.
local function add_counts(counts, row)
  for i = 1, row.counts and #row.counts or 0, 2 do
    counts[row.counts[i]] = math.max(counts[row.counts[i]] or -1, row.counts[i + 1])
  end
end

local function keep_notes(row)
  if row.since then call('ZADD', since, row.since, row.id) end
  if row.suspect then call('ZADD', suspects, row.suspect, row.id) end
  if row.error then keep_error(errors, row.id, row.error) end
  -- Ids whose heads are blocked are counted where any ever were.
  if row.trouble and row.trouble.blocked_since then call('HSETNX', meta, 'blocked', 0) end
end

local function note_longest(entries)
  local longest = tonumber(call('HGET', meta, 'max_len') or 0)
  for _, entry in ipairs(entries) do
    if #entry - PLACE > longest then
      longest = #entry - PLACE
      call('HSET', meta, 'max_len', longest)
    end
  end
end
