--! needs details
-- The shard as its holder has it, read only. Returns what include/details.lua says.
return shard_details()
