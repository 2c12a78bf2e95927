--! gives unspend
-- So many of those granted did not begin. They are taken from the oldest: what stays is then never older than what began.
local function unspend(log, count)
  for i = 2, #log, 2 do
    local part = math.min(count, log[i])
    log[i], count = log[i] - part, count - part
  end
end
