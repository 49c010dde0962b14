-- KEYS: after the fences, the request. ARGV: what is kept in front of the answer, and how long
local first_key, first = 3, 6
local kept = redis.call('GET', KEYS[2])
