--! keys refs
--! needs items
--! gives join_refs
-- Of two equal payloads that became one: what was tracked of either is tracked of the one that is kept. Beyond MOST items
-- of one payload, which each such push would write anew, an item ends by that.
local MOST = 4096

local function refs_in(kept) return kept and kept:sub(is_shared(kept) and 2 or 1) or '' end

local function join_refs(kept_place, gone_place)
  local kept, gone = kept_place:sub(9), gone_place:sub(9)
  if kept == gone or not is_tracked() then return end
  local of_kept, of_gone = unpack(call('HMGET', refs, kept, gone))
  if not of_kept and not of_gone then return end
  local stay, come, star = refs_in(of_kept), refs_in(of_gone), ''
  if not of_kept or not of_gone or is_shared(of_kept) or is_shared(of_gone) then star = '*' end
  if #come > #stay then stay, come = come, stay end
  local room = MOST * REF - #stay
  local joined = star .. stay .. come:sub(1, room)
  if joined ~= of_kept then call('HSET', refs, kept, joined) end
  if of_gone then call('HDEL', refs, gone) end
  change_rows(each_ref(come:sub(room + 1)), 'm', nil, function(row) row.w = stay:sub(1, REF) end)
end
