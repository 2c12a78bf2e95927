--! keys refs rows items
--! needs items in_use arrivals_under shelf sound sound_ids sound_meta
--! gives look_at_items
-- The items of tasks, as the rest of the shard has them. An item whose payload was set aside, or is gone, is lost; one whose
-- ref is gone as well is found by the look of its task (operate/task_verify.lua).
local STATUSES, there = 'erdfxcsml', {}

local function is_row(packed)
  local row = read_row(packed)
  return row and #row.s == 1 and STATUSES:find(row.s, 1, true) and is_any(row.i, 'string') and is_any(row.k, 'nil', 'string')
    and is_number(row.n, 0) and is_any(row.m, 'nil', 'table')
    and is_any(row.p, 'nil', 'string') and (row.t == nil or type(row.t) == 'table' and is_number(row.t[1], 0))
end

local function index_of(ref, status) return ref:sub(1, TASK) .. status .. ref:sub(TASK + 1) end

function CHECKS.rows(ref, packed)
  if #ref == TASK + 1 then
    if not whole(packed) then take_away('rows', rows, ref, packed, 'no number') end
  elseif #ref ~= REF or not is_row(packed) then
    take_away('rows', rows, ref, packed, 'the row is none')
  elseif call('ZADD', items, 'NX', 0, index_of(ref, read_row(packed).s)) == 1 then
    note_repair('rows', ref, 'the item was not in the index')
  end
end

function CHECKS.items(member)
  local ref = member:sub(1, TASK) .. member:sub(TASK + 2)
  local packed = #member == REF + 1 and call('HGET', rows, ref)
  local row = packed and read_row(packed)
  if row and row.s == member:sub(TASK + 1, TASK + 1) then return end
  call('ZREM', items, member)
  note_repair('items', member, 'no row has this status')
end

-- Open items among these refs, and whether the arrival number is that of a payload of their id; nil: of none that is known.
local function looked_up(arrival, of)
  local open, is_there = {}, nil
  for _, ref in ipairs(of) do
    local packed = call('HGET', rows, ref)
    local row = packed and read_row(packed)
    if row and row.i then
      there[row.i] = there[row.i] or arrivals_under(row.i)
      is_there = there[row.i][arrival] or false
      if row.s == 'e' or row.s == 'r' then open[#open + 1] = ref end
    end
  end
  return open, is_there
end

function CHECKS.refs(arrival, kept)
  if #arrival ~= 6 or #kept % REF > 1 or (is_shared(kept) and kept:sub(1, 1) ~= '*') then
    take_away('refs', refs, arrival, kept, 'these are no refs')
  else
    if not is_tracked() then note_use('tracking', true) end
    local open, is_there = looked_up(arrival, each_ref(kept))
    if is_there ~= false then return end
    change_rows(open, 'l')
    call('HDEL', refs, arrival)
    note_repair('refs', arrival, 'the payload is not there')
  end
  if call('EXISTS', refs) == 0 then note_use('tracking', false) end
end

local function look_at_items(parts)
  for _, part in ipairs({{'rows', rows, 'hash'}, {'items', items, 'zset'}, {'refs', refs, 'hash'}}) do
    KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = part
    parts[#parts + 1] = part[1]
  end
end
