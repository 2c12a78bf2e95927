--! keys undo headers_even headers_odd
--! needs cargo records flight carry_entries
--! gives carry_undo drop_undo
-- The rows by which actions can be undone (undo_rows.lua): {key, number, time, fields of the entry}, the oldest first. The
-- key tells the rows of several shards apart.

local function moved_numbers(counts)
  for i = 1, counts and #counts or 0, 2 do counts[i] = counts[i] + base end
end

local function moved_arrivals(found)
  for i = 1, found and #found or 0, 2 do found[i] = moved_arrival(found[i]) end
end

local function moved_row(row)
  local all = {}
  for _, name in ipairs({'entries', 'lies'}) do
    for _, entry in ipairs(row[name] or {}) do all[#all + 1] = entry:sub(9, PLACE) end
    row[name] = row[name] and moved_all(row[name])
  end
  for _, name in ipairs({'started', 'lost'}) do
    local entries, progress = {}, nil
    if row[name] then entries, progress = read_handed(row[name], 1) end
    for _, entry in ipairs(entries) do all[#all + 1] = entry:sub(9, PLACE) end
    row[name] = row[name] and handed(moved_all(entries), progress)
  end
  if has_headers then row.headers = found_at(all, headers_even, headers_odd) end
  row.old = row.old and moved(row.old)
  row.dead_progress = row.dead_progress and moved(row.dead_progress)
  for _, name in ipairs({'stamp', 'was'}) do
    if row[name] and row[name] ~= UNTOUCHED then row[name] = moved_arrival(row[name]) end
  end
  for _, name in ipairs({'refs', 'expiries'}) do moved_arrivals(row[name]) end
  moved_numbers(row.counts)
  local t = row.trouble or {}
  t.upto, t.keep = t.upto and t.upto + base, t.keep and t.keep + base
  return row
end

local function drop_undo(_, number) call('XDEL', undo, number) end

local function carry_undo()
  local from = '-'
  while not is_full() do
    local entries = call('XRANGE', undo, from, '+', 'COUNT', math.max(1, math.min(cargo_records, 100)))
    if #entries == 0 then return end
    for _, entry in ipairs(entries) do
      if is_full() then return end
      local number, fields = entry[1], entry[2]
      local is_sound, row = pcall(cmsgpack.unpack, fields[8] or '')
      if is_sound and type(row) == 'table' and type(row.id) == 'string' then
        local time = fields[10] or string.format('%.3f', number:match('^%d+') / 1000)
        row = moved_row(row)
        load('undo', row.id, number, {undo, number, time, fields[2], fields[4], fields[6], row}, 1)
      else
        drop_undo(nil, number)
      end
      from = '(' .. number
    end
  end
end
