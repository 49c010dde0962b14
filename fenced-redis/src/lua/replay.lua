if kept then
    return { kept }
end
