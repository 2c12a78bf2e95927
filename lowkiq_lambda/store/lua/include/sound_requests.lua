--! keys requests
--! needs in_use sound sound_ids sound_meta
--! gives look_at_requests
-- Requests of operators for single ids. One that is set aside is forgotten: the id goes on as ever, or waits for the end that
-- was written to its time.
local function is_sound_part(part, name)
  return part == nil or type(part) == 'table' and is_any(part.at, 'number') and is_any(part.by, 'string')
    and is_any(part[name], 'number') and part[name] == part[name] and is_any(part.due, 'nil', 'number')
    and (part.error == nil or type(part.error) == 'string') and is_any(part.suspect, 'nil', 'boolean')
end

function CHECKS.requests(id, packed)
  if not uses('requests') then note_use('requests', true) end
  local request = table_in(packed)
  local is_sound = is_utf8(id) and request and next(request) and is_sound_part(request.c, 'upto') and is_sound_part(request.p, 'ends')
  if not is_sound then take_away('requests', requests, id, packed, 'no request of an operator') end
end

-- First of all, as the times of ids that wait go by them.
local function look_at_requests(parts)
  KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'requests', requests, 'hash'}
  table.insert(parts, 1, 'requests')
end
