-- SPDX-License-Identifier: MIT
-- S6: a hash of 100 texts, 1,000 times a random letter each, is set in Redis, read back, and its
-- texts are sent. The argument is the port of Redis.
local task, tcp = require "sxe.task", require "sxe.tcp"
local port = tonumber(arg[1])
local CONNECTIONS = 10

local idle -- connections, each one task's at a time

-- Redis's protocol: a command is a list of strings, a reply begins with its kind and its length.
local function send(conn, ...)
    local words = {...}
    local parts = {"*", #words, "\r\n"}

    for _, word in ipairs(words) do
        parts[#parts + 1] = "$" .. #word .. "\r\n"
        parts[#parts + 1] = word
        parts[#parts + 1] = "\r\n"
    end
    assert(conn:write(table.concat(parts)))
end

local TEXT, LIST, FAILURE = ("$*-"):byte(1, 3)

local function receive(conn)
    local line = assert(conn:read("l")) -- with "\r", which tonumber() skips
    local kind, rest = line:byte(), line:sub(2)

    if kind == TEXT then
        return assert(conn:read(tonumber(rest) + 2)):sub(1, -3)
    elseif kind == LIST then
        local list = {}
        for i = 1, tonumber(rest) do
            list[i] = receive(conn)
        end
        return list
    elseif kind == FAILURE then
        error("redis: " .. rest)
    end
    return rest
end

local function command(conn, ...)
    send(conn, ...)
    return receive(conn)
end

local function connect()
    local queue = task.queue(CONNECTIONS)
    idle = queue
    for _ = 1, CONNECTIONS do
        queue:put(assert(tcp.connect("127.0.0.1", port)))
    end
end

return function(req)
    local words, texts = {}, {}

    if not idle then
        connect()
    end
    for i = 1, 200, 2 do
        words[i] = "field-" .. (i + 1) // 2
        -- rep() copies piece by piece: 65 pieces, not 1,000.
        words[i + 1] = string.char(math.random(97, 122)):rep(40):rep(25)
    end
    local conn = idle:get()
    local key = "lua-" .. req.id
    command(conn, "DEL", key)
    command(conn, "HMSET", key, table.unpack(words))
    local all = command(conn, "HGETALL", key)
    command(conn, "DEL", key)
    idle:put(conn)
    for i = 2, #all, 2 do
        texts[#texts + 1] = all[i]
    end
    return table.concat(texts)
end
