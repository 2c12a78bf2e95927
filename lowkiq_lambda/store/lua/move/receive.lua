--! keys meta
--! needs shard mover free_memory_first
--! with requests receive_request
--! rarely receive_waiting receive_dead receive_beside receive_undo
-- Takes in what a move brings. Harmless to repeat, at any time: a second copy changes nothing, even after further pushes.
-- ARGV[4]   epoch
-- ARGV[5]   merge
-- ARGV[6..] kind and row, as carry.lua returned them
-- Returns {'OK'}; {'OPEN'} where this move has opened the shard, which changes nothing; {'OVER'}; or a refusal.
local refused, last = outdated()
if refused then return refused end
if last ~= epoch then return OVER end
-- It has all, so these are copies.
if call('HGET', meta, 'receiving') ~= ARGV[4] then return {'OPEN'} end
free_memory_first()
local RECEIVE = {
  waiting = rarely().receive_waiting,
  dead = rarely().receive_dead,
  receipts = rarely().receive_receipts,
  item = rarely().receive_row,
  entry = rarely().receive_entry,
  lane = rarely().receive_lane,
  mark = rarely().receive_mark,
  undo = rarely().receive_undo,
  request = has_requests and receive_request or nil,
}
for i = 6, #ARGV, 2 do RECEIVE[ARGV[i]](ARGV[5], cmsgpack.unpack(ARGV[i + 1])) end
call('HSET', meta, 'now', latest_now)
return {'OK'}
