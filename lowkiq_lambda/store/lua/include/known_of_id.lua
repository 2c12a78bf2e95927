--! keys since errors suspects
--! needs retry_counts trouble texts failures
--! gives note_what_is_known
-- Notes in `row` what is known of an id that waits, and of these payloads of it. `base` is added to arrival numbers.
local function note_what_is_known(row, id, record, entries, base)
  local t = read_trouble(id)
  local counts = counts_of(id, t, record)
  for _, entry in ipairs(entries) do
    local arrival = number_of_arrival(entry)
    if counts[arrival] then
      row.counts = row.counts or {}
      row.counts[#row.counts + 1], row.counts[#row.counts + 2] = arrival + base, counts[arrival]
    end
  end
  -- The proof that a group is systemic stays behind; each id of the group runs alone.
  t.retry_counts, t.group = nil, t.group == '' and '' or nil
  t.upto, t.keep = t.upto and t.upto + base, t.keep and t.keep + base
  row.trouble = next(t) and t or nil
  row.since, row.suspect = call('ZSCORE', since, id) or nil, call('ZSCORE', suspects, id) or nil
  row.error = error_of(errors, id) or nil
  local noted = failures_of(id)
  row.failures = #noted > 0 and noted or nil
end
