-- KEYS: fences, the list of resets. ARGV: resource, token, reason, a token that none exceeds
local time = redis.call('TIME')
local now = string.format('%d%03d', time[1], math.floor(time[2] / 1000))
local old = redis.call('HGET', KEYS[1], ARGV[1]) or '0'
redis.call('XADD', KEYS[2], '*', 'resource', ARGV[1], 'old', old, 'new', ARGV[2], 'reason', ARGV[3])
-- What was seen of the tokens of before says nothing of those to come.
local seen = table.concat({ ARGV[4], now, ARGV[4], now }, ' ')
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2], ARGV[1] .. '\n', seen)
return old
