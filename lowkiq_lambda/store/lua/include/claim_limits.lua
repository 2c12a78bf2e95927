--! gives claim_limits
-- What one claim may carry, as ARGV has it from that position on: ids, payloads, bytes. Behind a slash: how many batches
-- of the ids run side by side, and the most payloads of one id; behind the bytes what a tenant's rate allows, and in how
-- many seconds. Most calls have none of these, and carry no byte for them.
local function two_limits(text)
  local limit = tonumber(text)
  if limit then return limit end
  local first, second = text:match('^(%d+)/(%d+)$')
  return tonumber(first), tonumber(second)
end

local function claim_limits(at)
  local ids, side_by_side = two_limits(ARGV[at])
  local payloads, of_one = two_limits(ARGV[at + 1])
  local bytes, rate = tonumber(ARGV[at + 2])
  if not bytes then
    local most, per
    bytes, most, per = ARGV[at + 2]:match('^(%d+)/(%d+)/(%S+)$')
    bytes, rate = tonumber(bytes), {tonumber(most), tonumber(per)}
  end
  return {ids, payloads, bytes, of_one or math.huge, side_by_side, rate}
end
