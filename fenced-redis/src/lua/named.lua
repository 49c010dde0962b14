-- KEYS: after the fences, the request. ARGV: what is kept in front of the answer
local first_key, first = 3, 5
local kept = redis.call('GET', KEYS[2])
