local keys, arguments = {}, {}
for i = first_key, #KEYS do
    keys[#keys + 1] = KEYS[i]
end
for i = first, #ARGV do
    arguments[#arguments + 1] = ARGV[i]
end
local value = body(keys, arguments)
if type(value) == 'table' and value.err then
    return value
end
local answer = 'null'
if type(value) == 'number' and value == math.floor(value) and math.abs(value) < 9007199254740992 then
    answer = string.format('%.0f', value)
elseif value ~= nil then
    local encoded, json = pcall(cjson.encode, value)
    answer = encoded and json or answer
end
