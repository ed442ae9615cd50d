-- SPDX-License-Identifier: MIT
--
-- A web server that speaks FastCGI, for tests: records as texts, and replies read record by record.
--
--     local server <close> = fastcgi.start("-r", directory)
--     local link <close> = server:dial()
--     link:send(fastcgi.get(1, "/a.txt"))
--     equal(link:answer().body, "hello")

local httpd = require "httpd"

local fastcgi = setmetatable({}, {__index = httpd})
fastcgi.__index = fastcgi
fastcgi.__close = httpd.__close

fastcgi.BEGIN, fastcgi.ABORT, fastcgi.END, fastcgi.PARAMS, fastcgi.STDIN, fastcgi.STDOUT = 1, 2, 3, 4, 5, 6
fastcgi.GET_VALUES, fastcgi.VALUES_RESULT, fastcgi.UNKNOWN = 9, 10, 11

-- Start a sxe-httpd that answers FastCGI at a free port, and HTTP at another one.
function fastcgi.start(...)
    local server = setmetatable(httpd.start("--fastcgi", "0", ...), fastcgi)
    local line = server.proc:line(20)
    server.fastcgi_port = tonumber(line and line:match("^answering FastCGI on 127%.0%.0%.1:(%d+)$"))
    check(server.fastcgi_port, ("%q and %q"):format(line, server.proc:errors()))
    return server
end

function fastcgi.record(type, id, content, padding)
    return string.pack(">BBI2I2BB", 1, type, id, #content, padding or 0, 0) .. content .. ("\0"):rep(padding or 0)
end

local function length(n)
    return n < 128 and string.pack("B", n) or string.pack(">I4", n | 0x80000000)
end

function fastcgi.pair(name, value)
    return length(#name) .. length(#value) .. name .. value
end

-- BEGIN_REQUEST and the whole PARAMS; `params` adds to the parameters that each request has, or replaces them.
function fastcgi.begin(id, params, last)
    local all = {REQUEST_METHOD = "GET", REQUEST_URI = "/", SERVER_PROTOCOL = "HTTP/1.1", HTTP_HOST = "a",
                 REMOTE_ADDR = "192.0.2.7", REMOTE_PORT = "7"}
    for name, value in pairs(params or {}) do
        all[name] = value
    end
    local pairs_of = {}
    for name, value in pairs(all) do
        pairs_of[#pairs_of + 1] = fastcgi.pair(name, value)
    end
    return fastcgi.record(fastcgi.BEGIN, id, string.pack(">I2Bxxxxx", 1, last and 0 or 1))
        .. fastcgi.record(fastcgi.PARAMS, id, table.concat(pairs_of), 5) .. fastcgi.record(fastcgi.PARAMS, id, "")
end

function fastcgi.get(id, uri, params, last)
    params = params or {}
    params.REQUEST_URI = uri
    return fastcgi.begin(id, params, last) .. fastcgi.record(fastcgi.STDIN, id, "")
end

function fastcgi.post(id, uri, body)
    return fastcgi.begin(id, {REQUEST_METHOD = "POST", REQUEST_URI = uri, CONTENT_LENGTH = tostring(#body)})
        .. fastcgi.record(fastcgi.STDIN, id, body) .. fastcgi.record(fastcgi.STDIN, id, "")
end

-- ---- A connection ----

local link = {}
link.__index = link

function fastcgi.connect(ip, port)
    return setmetatable({sock = wire.connect(ip, port), open = {}}, link)
end

function fastcgi:dial()
    return fastcgi.connect("127.0.0.1", self.fastcgi_port)
end

function link:send(bytes)
    self.sock:send(bytes)
end

-- Read exactly so many bytes; nil: the connection has ended or was reset.
function link:read(number)
    if number == 0 then return "" end
    local good, bytes = pcall(self.sock.recv, self.sock, number)
    return good and bytes or nil
end

-- The next record: its type, id and content; nil: the connection has ended.
function link:record()
    local head = self:read(8)
    if not head then return nil end
    local _, type, id, size, padding = string.unpack(">BBI2I2B", head)
    local content = self:read(size + padding)
    return content and type, id, content and content:sub(1, size)
end

-- The next reply that ends: its id, status, head and body, and the protocol's status. nil: the connection has ended.
function link:answer()
    while true do
        local type, id, content = self:record()
        if not type then return nil end
        self.open[id] = self.open[id] or {}
        if type == fastcgi.STDOUT then
            table.insert(self.open[id], content)
        elseif type == fastcgi.END then
            local text = table.concat(self.open[id])
            self.open[id] = nil
            local head, body = text:match("^(.-\r\n)\r\n(.*)$")
            return {id = id, status = tonumber(text:match("^Status: (%d+) ")), head = head, body = body, text = text,
                    application = string.unpack(">I4", content), protocol = content:byte(5)}
        else
            return {id = id, type = type, content = content}
        end
    end
end

function link:__close()
    self.sock:close()
end

return fastcgi
