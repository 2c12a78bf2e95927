--! keys trouble
--! gives read_trouble write_trouble
-- What an id's troubles are, kept only while it has any:
-- `group` of suspects, '' where a crash made it one; `crashes`, and the `crashed_payload` that has them (its SHA-1);
-- `chunk_limit`, the most payloads of its next chunk, and the `halvings` that led to it; `blamed` alone for its last
-- failure; `exit_count`, how often in a row it has exited; `at_risk`, its handler runs alone, so if its holder dies now
-- it has a crash counted; `run_alone`, its holder died while it ran together with other suspects; `abandoned`, a process
-- that died or left had payloads of it in its hands, so they may have run, until they end; `retry_counts` of its
-- payloads (retry_counts.lua); `blocked_since`, the time since when its head is blocked, and `head` (blocked_head.lua);
-- `rest`, `upto` and `keep`, of what follows a dead head (dead_heads.lua); `put_off`, why its handler put it off last.
-- Counted crashes and halvings are the nonces of holders of which nothing more was heard.
local function read_trouble(id)
  local packed = call('HGET', trouble, id)
  return packed and cmsgpack.unpack(packed) or {}
end

local function write_trouble(id, t)
  if next(t) then call('HSET', trouble, id, cmsgpack.pack(t)) else call('HDEL', trouble, id) end
end
