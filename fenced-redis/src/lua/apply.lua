-- A sum beyond 2^53 arrives rounded, so that its text is asked for.
local function exact(sum, ...)
    if sum > -9007199254740992 and sum < 9007199254740992 then
        return string.format('%.0f', sum)
    end
    return redis.call(...)
end

local answers, key, at = {}, first_key, first
while ARGV[at] do
    local operation, on, one, two, answer = ARGV[at], KEYS[key], ARGV[at + 1], ARGV[at + 2], '1'
    if operation == 'set' then
        redis.call('SET', on, one)
        at = at + 2
    elseif operation == 'set_for' then
        redis.call('SET', on, one, 'PX', two)
        at = at + 3
    elseif operation == 'del' then
        answer = redis.call('DEL', on)
        at = at + 1
    elseif operation == 'incr' then
        answer = exact(redis.call('INCRBY', on, one), 'GET', on)
        at = at + 2
    elseif operation == 'hset' then
        answer = redis.call('HSET', on, one, two)
        at = at + 3
    else
        answer = exact(redis.call('HINCRBY', on, one, two), 'HGET', on, one)
        at = at + 3
    end
    answers[#answers + 1], key = answer, key + 1
end
local answer = '[' .. table.concat(answers, ',') .. ']'
