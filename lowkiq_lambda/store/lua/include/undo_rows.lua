--! keys undo undo_notes meta expiries
--! needs shard records
--! with tracking items mark_items
--! gives undo_log
-- The rows by which the actions of the last ten minutes can be undone, one for each id that an action has changed: a
-- stream of `run`, the action's id; `act`, its name; `kind`, how it is undone (undo.lua); and `row`. Beside it a hash has
-- `bytes` of all rows; `last`, the number of the newest; and behind 'a' of each action {act, time, ids, of}, as msgpack:
-- of so many ids that it has changed these can be undone. Numbers are times in milliseconds, and never go back.
-- ARGV[4]  behind the 12 bytes of the token the id of the action (16 bytes), and its name
local undo_log = {seconds = 600, skipped = {}}
local KEPT_FOR, MOST_ROW_BYTES, OF_ENTRY, READ = 660, 4 * 1024 * 1024, 100, 10
local run, act_name, undo_books, has_room = ARGV[4]:sub(13, 28), ARGV[4]:sub(29), nil, false

function undo_log.note_of(other)
  if undo_books.actions[other] == nil then
    local packed = call('HGET', undo_notes, 'a' .. other)
    local is_sound, note = pcall(cmsgpack.unpack, packed or '')
    undo_books.actions[other] = is_sound and type(note) == 'table' and #note == 4 and note or {act_name, now, 0, 0}
  end
  return undo_books.actions[other]
end

-- Before the first write of a script: Redis lets those pass that follow. An action must not fail as memory is full, so it is
-- then one that cannot be undone.
function undo_log.begin()
  has_room = type(redis.pcall('HSETNX', meta, 'now', now_text)) ~= 'table'
  local bytes, last = unpack(call('HMGET', undo_notes, 'bytes', 'last'))
  undo_books = {bytes = tonumber(bytes or 0), last = last, actions = {}}
end

local function next_number()
  local ms, last_ms, seq = math.floor(now * 1000), string.match(undo_books.last or '', '^(%d+)-(%d+)$')
  if last_ms and tonumber(last_ms) >= ms then return last_ms .. '-' .. string.format('%.0f', seq + 1) end
  return string.format('%.0f-0', ms)
end

-- `fields`: those of an entry. A row is one id of its action, unless it goes on another row.
function undo_log.drop(number, fields)
  if call('XDEL', undo, number) == 0 then return false end
  undo_books.bytes = undo_books.bytes - #fields[8] - OF_ENTRY
  local note = undo_log.note_of(fields[2])
  if not cmsgpack.unpack(fields[8]).more then note[3] = note[3] - 1 end
  return true
end

-- The oldest give way.
local function drop_old_rows()
  local oldest_ms = (now - undo_log.seconds) * 1000
  while true do
    local oldest = call('XRANGE', undo, '-', '+', 'COUNT', READ)
    for _, entry in ipairs(oldest) do
      local is_over = tonumber((entry[1]:match('^%d+'))) < oldest_ms
      if not is_over and undo_books.bytes <= MOST_ROW_BYTES then return end
      undo_log.drop(entry[1], entry[2])
    end
    if #oldest < READ then return end
  end
end

-- An entry of these fields; `has_more`: it goes on a row of the same id and action.
function undo_log.add(entry, packed, has_more, note)
  if #packed + OF_ENTRY > MOST_ROW_BYTES then return end
  local number = next_number()
  if type(redis.pcall('XADD', undo, number, unpack(entry))) == 'table' then
    -- Its notes are lost, or it has another type: none of it can be undone.
    call('UNLINK', undo, undo_notes)
    undo_books.bytes, undo_books.actions, note[3] = 0, {[entry[2]] = note}, 0
    call('XADD', undo, number, unpack(entry))
  end
  undo_books.last, undo_books.bytes = number, undo_books.bytes + #packed + OF_ENTRY
  if not has_more then note[3] = note[3] + 1 end
  drop_old_rows()
end

-- `row.more`: it goes on a row of the same id and action.
function undo_log.keep(kind, row)
  local note = undo_log.note_of(run)
  if not row.more then note[4] = note[4] + 1 end
  if not has_room then return end
  local packed = cmsgpack.pack(row)
  undo_log.add({'run', run, 'act', act_name, 'kind', kind, 'row', packed}, packed, row.more, note)
end

-- How many ids of the action can be undone.
function undo_log.finish()
  local written = false
  for other, note in pairs(undo_books.actions) do
    written = true
    if note[3] > 0 then
      call('HSET', undo_notes, 'a' .. other, cmsgpack.pack(note))
    else
      call('HDEL', undo_notes, 'a' .. other)
    end
  end
  if written then
    call('HSET', undo_notes, 'bytes', undo_books.bytes, 'last', undo_books.last or '0-0')
    call('EXPIRE', undo, KEPT_FOR)
    call('EXPIRE', undo_notes, KEPT_FOR)
  end
  local own = undo_books.actions[run]
  return own and own[3] or 0
end

-- Into a row: what is no longer kept once its payloads are gone.
function undo_log.beside(row, entries)
  local arrivals = {}
  for i, entry in ipairs(entries) do arrivals[i] = entry:sub(PLACE - 5, PLACE) end
  local function keep_in(name, arrival, value)
    if not value then return end
    local kept = row[name] or {}
    kept[#kept + 1], kept[#kept + 2], row[name] = arrival, value, kept
  end
  if has_tracking and is_tracked() then
    for i, kept in ipairs(refs_at(arrivals)) do keep_in('refs', arrivals[i], kept) end
  end
  if not has_expiry then return end
  for _, arrival in ipairs(arrivals) do keep_in('expiries', arrival, call('HGET', expiries, arrival)) end
end
