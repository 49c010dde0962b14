if raised then
    -- Tokens above the first number of `seen` came here after its second, in milliseconds; so did
    -- those above its third after its fourth, which take their place in time.
    local time = redis.call('TIME')
    local now = string.format('%d%03d', time[1], math.floor(time[2] / 1000))
    local seen = fence and redis.call('HGET', KEYS[1], resource .. '\n')
    local older, old, newer, new = string.match(seen or '', '^(%d+) (%d+) (%d+) (%d+)$')
    if not older then
        older, old, newer, new = newest, now, newest, now
    elseif tonumber(now) - tonumber(new) >= tonumber(kept_for) / 2 then
        older, old, newer, new = newer, new, newest, now
    end
    seen = table.concat({ older, old, newer, new }, ' ')
    redis.call('HSET', KEYS[1], resource, raised, resource .. '\n', seen)
end
