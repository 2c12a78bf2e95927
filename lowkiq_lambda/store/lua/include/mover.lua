--! keys meta
--! needs shard
--! gives epoch OVER outdated is_sealed
-- What the scripts of a move between shards begin with (docs/resharding.md). Each is of one move, and none of an earlier one
-- has any effect: a shard's `generation` is that of the last declaration or move that gave it an order. Of a move's own
-- orders meta also has `still_until`, until when nobody may take the shard; `closed`, the floors, and since when, `closed_at`;
-- or `receiving`, the move that brings its jobs.
-- ARGV[4]  epoch, the generation of the move
local epoch = tonumber(ARGV[4])
local OVER = {'OVER'}

-- Why the call may not go on, or nil; and which order was the last, or nil.
local function outdated()
  local refused = refusal(nil, true)
  if refused and refused[1] ~= 'CLOSED' then return refused end
  local last = call('HGET', meta, 'generation')
  if last and not (tonumber(last) < 2 ^ 53) then error('DAMAGED generation') end
  if last and tonumber(last) > epoch then return OVER end
  return nil, tonumber(last)
end

-- Whether this move has closed the shard.
local function is_sealed(last) return last == epoch and call('HEXISTS', meta, 'closed') == 1 end
