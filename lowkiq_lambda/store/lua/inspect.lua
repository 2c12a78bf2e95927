--! include shard situation
-- The shard as its holder has it, read only. Returns what include/situation.lua says.
return situation()
