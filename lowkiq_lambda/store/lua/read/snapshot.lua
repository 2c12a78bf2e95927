--! keys due retry morgue meta
-- What an operator's action begins with, read only.
-- Returns {arrival number, the latest time that the shard has seen, ids that wait, of them ids that have failed,
--   ids in the morgue}.
local arrival, seen_at = unpack(call('HMGET', meta, 'arrival', 'now'))
return {arrival or '0', seen_at or '0', call('ZCARD', due), call('ZCARD', retry), call('ZCARD', morgue)}
