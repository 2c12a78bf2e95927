--! gives exists
local function exists(key) return call('EXISTS', key) == 1 end
