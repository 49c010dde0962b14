-- KEYS: fences, whatever else the script needs
-- ARGV: resource, token, and in one (each costs time): kind of holder, whether it claimed, the
-- oldest plausible token, how long requests are kept
--
-- A fence is the newest exclusive holder's token, and after a slash that of a newer shared one.
-- Tokens are compared as text: the numbers of Lua are rounded above 2^53.
local resource, mine = ARGV[1], ARGV[2]
local fence = redis.call('HGET', KEYS[1], resource)
local newest, raised, kept_for
if fence ~= mine then
    local function newer(one, other)
        return #one > #other or (#one == #other and one > other)
    end
    local exclusive, shared
    if fence then
        exclusive, shared = string.match(fence, '^(%d+)/?(%d*)$')
        if not exclusive then
            return redis.error_reply('FENCED_UNREADABLE the fence')
        end
    else
        -- Older ones were collected.
        exclusive, shared = redis.call('HGET', KEYS[1], '') or '0', ''
    end
    newest = shared == '' and exclusive or shared
    local kind, claimed, plausible
    kind, claimed, plausible, kept_for = string.match(ARGV[3], '^(%a+) (%a+) (%d+) (%d+)$')
    local reader = kind == 'shared'
    if newer(reader and exclusive or newest, mine) then
        return redis.error_reply('FENCED_STALE ' .. newest)
    end
    if not fence or newer(mine, reader and shared or exclusive) then
        if claimed == 'claimed' then
            return redis.error_reply('FENCED_UNCLAIMED the fence')
        end
        if newest ~= '0' and newer(plausible, newest) then
            return redis.error_reply('FENCED_IMPLAUSIBLE ' .. newest)
        end
        raised = reader and exclusive .. '/' .. mine or mine
    end
end
