-- A script that fails keeps what it has written: everything is checked before.
local function unfit(number, reason)
    return redis.error_reply('FENCED_UNFIT ' .. number .. ' ' .. reason)
end

-- The two halves of a whole number as Redis writes it, each small enough for Lua.
local function halves(text)
    local sign, digits = string.match(text, '^(%-?)([1-9]%d*)$')
    if text == '0' then
        return 0, 0
    elseif not digits or #digits > 19 then
        return nil
    end
    local one = sign == '-' and -1 or 1
    return one * (tonumber(string.sub(digits, 1, -10)) or 0), one * tonumber(string.sub(digits, -9))
end

-- Whether the number of these halves has 64 bits.
local function counts(high, low)
    if math.abs(low) >= 1e9 then
        local carry = low > 0 and 1 or -1
        high, low = high + carry, low - carry * 1e9
    end
    if high > 0 and low < 0 then
        high, low = high - 1, low + 1e9
    elseif high < 0 and low > 0 then
        high, low = high + 1, low - 1e9
    end
    local largest = (high < 0 or low < 0) and 854775808 or 854775807
    high, low = math.abs(high), math.abs(low)
    return high < 9223372036 or (high == 9223372036 and low <= largest)
end

local function check_count(held, by)
    if type(held) == 'table' then
        return 'type'
    end
    local high, low = halves(held or '0')
    if not high or not counts(high, low) then
        return 'number'
    end
    local more_high, more_low = halves(by)
    return not counts(high + more_high, low + more_low) and 'range'
end

local number, key, at = 1, first_key, first
while ARGV[at] do
    local operation, wrong = ARGV[at]
    if operation == 'set' then
        at = at + 2
    elseif operation == 'del' then
        at = at + 1
    elseif operation == 'set_for' then
        at = at + 3
    elseif operation == 'incr' then
        wrong = check_count(redis.pcall('GET', KEYS[key]), ARGV[at + 1])
        at = at + 2
    elseif operation == 'hincr' then
        wrong = check_count(redis.pcall('HGET', KEYS[key], ARGV[at + 1]), ARGV[at + 2])
        at = at + 3
    elseif operation == 'hset' then
        wrong = type(redis.pcall('HLEN', KEYS[key])) == 'table' and 'type'
        at = at + 3
    else
        wrong = 'operation'
    end
    if wrong then
        return unfit(number, wrong)
    end
    number, key = number + 1, key + 1
end
