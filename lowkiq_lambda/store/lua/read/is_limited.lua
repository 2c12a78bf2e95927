--! keys meta
-- Whether visits to the shard have to ask its queue for a permit, as an operator has set limits, read only.
-- Returns {1 or 0}.
return {call('HEXISTS', meta, 'limited')}
