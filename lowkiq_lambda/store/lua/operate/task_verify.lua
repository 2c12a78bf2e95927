--! keys rows items
--! needs shard items mark_items arrivals_under free_memory_first
-- Ends those of a task's open items that no job of the shard has: keys were evicted, or deleted by hand. As each script keeps item
-- and job together, there are none else. Harmless to repeat.
-- ARGV[4]  task, 12 bytes
-- ARGV[5]  status, a letter
-- ARGV[6]  the number (4 bytes) that they come after, or ''
-- ARGV[7]  how many to look at
-- Returns {'OK', how many were lost, the number to go on after, or ''}, or a refusal.
local refused = refusal()
if refused then return refused end
local task, status, after, most = ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local first = after == '' and '[' .. task .. status or '(' .. task .. status .. after
local last = '(' .. task .. string.char(status:byte() + 1)
local members = call('ZRANGE', items, first, last, 'BYLEX', 'LIMIT', 0, most)

local function has_job(ref, id)
  local arrivals = {}
  for arrival in pairs(arrivals_under(id)) do arrivals[#arrivals + 1] = arrival end
  for _, kept in ipairs(refs_at(arrivals)) do
    for _, own in ipairs(each_ref(kept)) do
      if own == ref then return true end
    end
  end
  return false
end

local lost, unknown = {}, {}
for _, member in ipairs(members) do
  local ref = task .. member:sub(TASK + 2)
  local packed = call('HGET', rows, ref)
  local row = packed and read_row(packed)
  if not row then
    unknown[#unknown + 1] = member
  elseif not has_job(ref, row.i or '') then
    lost[#lost + 1] = ref
  end
end
free_memory_first()
change_rows(lost, 'l')
if #unknown > 0 then call('ZREM', items, unpack(unknown)) end
return {'OK', #lost, #members == most and members[most]:sub(TASK + 2) or ''}
