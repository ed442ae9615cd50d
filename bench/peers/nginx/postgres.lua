-- SPDX-License-Identifier: MIT
-- A client of PostgreSQL for nginx's Lua, in the way of pgmoon, which no package of Debian contains: values are written
-- into the text of a query (the simple protocol), and connections are kept in nginx's pool of at most ten. It reads a
-- message in two steps, where pgmoon takes three.
local bit = require "bit"
local byte, char, find, sub = string.byte, string.char, string.find, string.sub
local tcp, tonumber = ngx.socket.tcp, tonumber
local NUMBERS = { [20] = true, [21] = true, [23] = true, [700] = true, [701] = true, [1700] = true }
local postgres = {}

local function put4(number)
    return char(bit.band(bit.rshift(number, 24), 255), bit.band(bit.rshift(number, 16), 255),
                bit.band(bit.rshift(number, 8), 255), bit.band(number, 255))
end

local function get4(text, at)
    local a, b, c, d = byte(text, at, at + 3)
    return bit.bor(bit.lshift(a, 24), bit.lshift(b, 16), bit.lshift(c, 8), d)
end

local function get2(text, at)
    local a, b = byte(text, at, at + 1)
    return a * 256 + b
end

local function receive(sock)
    local head, why = sock:receive(5)
    if not head then return nil, why end
    local length = get4(head, 2) - 4
    return sub(head, 1, 1), length > 0 and sock:receive(length) or ""
end

local function fields_of(body)
    local fields, at = {}, 3
    for i = 1, get2(body, 1) do
        local stop = find(body, "\0", at, true)
        fields[i] = { sub(body, at, stop - 1), NUMBERS[get4(body, stop + 7)] }
        at = stop + 19
    end
    return fields
end

local function row_of(body, fields)
    local row, at = {}, 3
    for i = 1, #fields do
        local field, length = fields[i], get4(body, at)
        at = at + 4
        if length >= 0 then
            local value = sub(body, at, at + length - 1)
            row[field[1]] = field[2] and tonumber(value) or value
            at = at + length
        end
    end
    return row
end

-- Read until the server is ready for a query.
local function read_rows(sock)
    local rows, fields, problem = {}, nil, nil
    while true do
        local kind, body = receive(sock)
        if not kind then return nil, body end
        if kind == "T" then
            fields = fields_of(body)
        elseif kind == "D" then
            rows[#rows + 1] = row_of(body, fields)
        elseif kind == "E" then
            problem = body
        elseif kind == "Z" then
            return not problem and rows or nil, problem
        end
    end
end

local function connect(port)
    local sock = tcp()
    -- More than ten requests wait in a queue for one of ten connections, as in the other servers.
    local ok, why = sock:connect("127.0.0.1", port, { pool_size = 10, backlog = 1000 })
    if not ok then return nil, why end
    if sock:getreusedtimes() == 0 then
        local body = put4(196608) .. "user\0bench\0database\0postgres\0\0"
        sock:send(put4(#body + 4) .. body)
        ok, why = read_rows(sock)
        if not ok then return nil, why end
    end
    return sock
end

function postgres.literal(value)
    return type(value) == "number" and tostring(value) or "'" .. value:gsub("'", "''") .. "'"
end

function postgres.query(port, text)
    local sock, why = connect(port)
    local rows
    if not sock then return nil, why end
    sock:send{ "Q", put4(#text + 5), text, "\0" }
    rows, why = read_rows(sock)
    sock:setkeepalive(3600000, 10)
    return rows, why
end

return postgres
