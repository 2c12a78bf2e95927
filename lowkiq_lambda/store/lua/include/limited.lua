--! gives lacks_permit
-- Whether a visit has to ask its queue for a permit first: an operator has set limits, which is `mark` in the shard's meta,
-- and the visit has not asked. The nonces of those that have one end with '+'.
local function lacks_permit(mark, nonce) return mark and nonce:sub(-1) ~= '+' end
