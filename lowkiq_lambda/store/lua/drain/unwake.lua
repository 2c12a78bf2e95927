--! keys meta
--! needs shard
-- Takes back a wake that started no drain, so that the next push may wake the shard again. Harmless to repeat.
-- ARGV[4]  nonce of the wake
-- Returns {'OK'}, or a refusal.
local refused = refusal()
if refused then return refused end
if call('HGET', meta, 'woken_by') == ARGV[4] then
  call('HDEL', meta, 'woken_by', 'woken_until', 'woken_token')
end
return {'OK'}
