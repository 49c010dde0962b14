-- KEYS: fences. ARGV: floor, cursor. Only what has fences gets a floor, in whose place it stands.
local function newer(one, other)
    return #one > #other or (#one == #other and one > other)
end
if redis.call('EXISTS', KEYS[1]) == 0 then
    return { '0', 0 }
end
local floor = redis.call('HGET', KEYS[1], '') or '0'
if newer(ARGV[1], floor) then
    floor = ARGV[1]
    redis.call('HSET', KEYS[1], '', floor)
end
local scanned = redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', 512)
local collected, entries = 0, scanned[2]
for i = 1, #entries, 2 do
    local resource = entries[i]
    if resource ~= '' and string.sub(resource, -1) ~= '\n' then
        local exclusive, shared = string.match(entries[i + 1], '^(%d+)/?(%d*)$')
        local newest = shared == '' and exclusive or shared
        if newest and newer(floor, newest) then
            collected = collected + redis.call('HDEL', KEYS[1], resource)
            redis.call('HDEL', KEYS[1], resource .. '\n')
        end
    end
end
return { scanned[1], collected }
