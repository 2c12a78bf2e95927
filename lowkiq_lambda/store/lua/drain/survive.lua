--! keys meta
--! needs shard free_memory_first let_go trouble
-- A holder that could not settle says that it lives, once its handlers have ended: it counts no crash on the lone
-- suspect that it had. What is in flight under it counts as abandoned; what was taken for its death is taken back.
-- Harmless to repeat, and to say when the settling had been written after all.
-- ARGV[4]  nonce
-- ARGV[5]  id
-- Returns {'OK'}, or a refusal.
local refused = refusal()
if refused then return refused end
local nonce, id = ARGV[4], ARGV[5]
free_memory_first()
local holder, held_until = unpack(call('HMGET', meta, 'nonce', 'until'))
if holder == nonce then
  if tonumber(held_until) > 0 then
    call('HSET', meta, 'abandoned', 1, 'nonce', 'abandoned ' .. nonce)
    let_go()
  end
  return {'OK'}
end

local t = read_trouble(id)
local function take_back(nonces)
  for i, one in ipairs(nonces or {}) do
    if one == nonce then return table.remove(nonces, i) end
  end
end
if take_back(t.crashes) and #t.crashes == 0 then t.crashes, t.crashed_payload = nil, nil end
if take_back(t.halvings) then
  -- What halved its chunk without a reason.
  t.chunk_limit = t.chunk_limit * 2
  if #t.halvings == 0 then t.halvings, t.chunk_limit = nil, nil end
end
write_trouble(id, t)
return {'OK'}
