-- What one claim may carry, as ARGV has it from that position on: ids, payloads, bytes. Behind a slash: how many batches
-- of the ids run side by side, and the most payloads of one id. Most calls have neither, and carry no byte for them.
local function two_limits(text)
  local limit = tonumber(text)
  if limit then return limit end
  local first, second = text:match('^(%d+)/(%d+)$')
  return tonumber(first), tonumber(second)
end

local function claim_limits(at)
  local ids, side_by_side = two_limits(ARGV[at])
  local payloads, of_one = two_limits(ARGV[at + 1])
  return {ids, payloads, tonumber(ARGV[at + 2]), of_one or math.huge, side_by_side}
end
