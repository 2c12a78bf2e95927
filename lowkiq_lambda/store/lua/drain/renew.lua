--! keys meta
--! needs shard free_memory_first lease stop_request
--! with requests requests
-- Prolongs the lease of a holder whose batch runs long, and answers whether the holder is to come to an end. Harmless to repeat.
-- ARGV[4]  nonce
-- ARGV[5]  token
-- ARGV[6]  ttl
-- Returns {'OK', 'paused', 'limited', 'quiet' or ''} and, where ids in flight have requests, these as
--   include/requests.lua has them, {'LOST'}, or a refusal.
local refused = refusal()
if refused then return refused end
local nonce, token, held_until = unpack(call('HMGET', meta, 'nonce', 'token', 'until'))
if nonce ~= ARGV[4] or token ~= ARGV[5] or tonumber(held_until) == 0 then return {'LOST'} end
free_memory_first()
hold(token, tonumber(ARGV[6]), tonumber(held_until))
return {'OK', stop_request(token), has_requests and requested.in_flight() or nil}
