--! gives comes_before
-- Whether one id, or place, comes before another by its bytes: Lua's own string order follows the server's locale.
local function comes_before(a, b)
  for i = 1, #a do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return y ~= nil and x < y end
  end
  return #a < #b
end
