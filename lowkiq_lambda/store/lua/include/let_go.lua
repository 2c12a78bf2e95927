--! keys meta lease
--! needs shard
--! gives let_go
local function let_go()
  call('DEL', lease)
  call('HSET', meta, 'until', 0, 'now', latest_now)
end
