-- KEYS: fences, the request. ARGV: resource
local time = redis.call('TIME')
return {
    redis.call('GET', KEYS[2]),
    redis.call('HGET', KEYS[1], ARGV[1]),
    redis.call('HGET', KEYS[1], ARGV[1] .. '\n'),
    redis.call('HGET', KEYS[1], ''),
    string.format('%d%03d', time[1], math.floor(time[2] / 1000)),
}
