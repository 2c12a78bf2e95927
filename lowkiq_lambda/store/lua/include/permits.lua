--! keys permits
--! needs queue
--! gives permits_now
-- The permits of a queue: hash of nonce to msgpack of `shard`; `till`, when it ends by itself; `n`, the number of its last
-- call; `granted`, ids by that call; `at`, until when these may begin. An offer stands under 'offer ' and the shard.

-- Those that last, by name; how many these are; when the first of them ends; and the names of those that do not last.
local function permits_now()
  local lasting, count, first_end, ended = {}, 0, math.huge, {}
  local all = call('HGETALL', permits)
  for i = 1, #all, 2 do
    local is_sound, permit = pcall(cmsgpack.unpack, all[i + 1])
    if is_sound and type(permit) == 'table' and (tonumber(permit.till) or 0) - ahead > queue_now then
      permit.till = permit.till - ahead
      if permit.at then permit.at = permit.at - ahead end
      lasting[all[i]], count, first_end = permit, count + 1, math.min(first_end, permit.till)
    else
      ended[#ended + 1] = all[i]
    end
  end
  return lasting, count, first_end, ended
end
