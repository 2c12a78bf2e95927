--! keys morgue morgue_errors morgue_payloads
--! needs cargo carry_entries records put page texts failures morgue
--! gives drop_dead carry_dead
-- What lies in the morgue. A row is a map of `id`; `at`, when the last of it died; `entries`; and, where there are any,
-- `error`, `failures`, `started`, place and progress of a started job, and what carry_entries.lua adds.

local function drop_dead(id, upto)
  local prefix = box_prefix(id)
  local members = call('ZRANGE', morgue_payloads, '[' .. prefix, '(' .. prefix .. upto, 'BYLEX', 'LIMIT', 0, 1000)
  if #members > 0 then forget(id, members) end
end

local function load_dead(id, at)
  local row = {id = id, at = at, error = error_of(morgue_errors, id) or nil}
  local entries = page(morgue_payloads, id, '', math.min(cargo_records, 1000), cargo_bytes)
  if #entries == 0 then error('DAMAGED id without payloads') end
  local last, noted, started = entries[#entries], failures_of(id), error_of(morgue_errors, PROGRESS .. id)
  row.failures = #noted > 0 and noted or nil
  row.started = started and moved(started) or nil
  row.entries = moved_all(entries)
  add_what_entries_have(row, entries)
  load('dead', id, last:sub(1, PLACE - 6) .. struct.pack('>I6', struct.unpack('>I6', last, PLACE - 5) + 1), row, #entries)
end

local function carry_dead()
  local from = 0
  while not is_full() do
    local listed = call('ZRANGE', morgue, from, from + 99, 'WITHSCORES')
    if #listed == 0 then return end
    for i = 1, #listed, 2 do
      if is_full() then return end
      load_dead(listed[i], listed[i + 1])
    end
    from = from + 100
  end
end
