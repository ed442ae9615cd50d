-- SPDX-License-Identifier: MIT
--
-- Slow and hostile clients of server.lua. Each is a coroutine that yields the seconds to wait; none blocks the driver.

local clients = {}
clients.__index = clients

local CLOSE_SECONDS <const> = 60 -- a server that has not closed a connection by then has forgotten it
local STATUS <const> = "^HTTP/1%.[01] (%d%d%d) "
-- The head of a ClientHello: a handshake record of 512 bytes, TLS 1.2, a random of 32 bytes and an empty session id.
local HELLO <const> = "\22\3\1\2\0\1\0\1\252\3\3" .. ("r"):rep(32) .. "\0" .. ("\0"):rep(466)

local pause <const> = coroutine.yield

-- A connection of a client; the client closes what it leaves open.
local function connect(self, port)
    local sock = wire.connect("127.0.0.1", port)
    self.socks[#self.socks + 1] = sock
    return sock
end

-- Send a text in pieces; false: the server closed the connection meanwhile.
local function send_pieces(sock, text, size, seconds)
    for i = 1, #text, size do
        local piece = text:sub(i, i + size - 1)
        if sock:send_some(piece, 0) < #piece then return false end
        pause(seconds)
    end
    return true
end

-- Take up to `size` bytes that have come; the second result tells that the server closed the connection.
local function take(sock, size)
    local bytes = {}
    while #bytes < size and sock:ready(0) do
        local is_read, byte = pcall(sock.recv, sock, 1)
        if not is_read then return table.concat(bytes), true end
        bytes[#bytes + 1] = byte
    end
    return table.concat(bytes), false
end

-- Wait until the server closes the connection; return all that it sent.
local function take_all(self, sock)
    local said, is_closed = "", false
    local deadline = wire.time() + CLOSE_SECONDS
    repeat
        local bytes
        bytes, is_closed = take(sock, 65536)
        said = said .. bytes
        if not is_closed then
            if wire.time() > deadline then
                self.complain(("%s: the server left the connection open for %d s"):format(self.act, CLOSE_SECONDS))
                return said
            end
            pause(0.1)
        end
    until is_closed
    return said
end

local function expect(self, target, sock, statuses)
    local said = take_all(self, sock)
    local status = said:match(STATUS)
    if target.is_steady and not (status and statuses:find(status, 1, true)) then
        self.complain(("%s: expected %s, got %q"):format(self.act, statuses, said:sub(1, 80)))
    end
end

local acts = {}

acts["a slow head"] = function(self, target)
    local sock = connect(self, target.port)
    send_pieces(sock, "GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 3, 0.1)
    expect(self, target, sock, "200 408") -- 408: a busy machine makes the pauses longer
end

acts["a head that never ends"] = function(self, target)
    local sock = connect(self, target.port)
    send_pieces(sock, "GET /a.txt HTTP/1.1\r\nHost: a\r\nX: " .. ("x"):rep(200), 4, 0.2)
    take_all(self, sock)
end

acts["a slow body"] = function(self, target)
    local sock = connect(self, target.port)
    sock:send_some("POST /lua/length HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 40\r\n\r\n", 0)
    send_pieces(sock, ("b"):rep(40), 2, 0.1)
    expect(self, target, sock, "200 408")
end

acts["a body that never ends"] = function(self, target)
    local sock = connect(self, target.port)
    sock:send_some("POST /lua/length HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin", 0)
    take_all(self, sock)
end

acts["a slow reader"] = function(self, target)
    local sock <close> = wire.connect("127.0.0.1", target.port, 4096)
    sock:send_some("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n", 0)
    for _ = 1, 40 do
        local _, is_closed = take(sock, 500)
        if is_closed then break end
        pause(0.1)
    end
end

acts["a reader that stops"] = function(self, target)
    local sock = wire.connect("127.0.0.1", target.port, 4096)
    self.socks[#self.socks + 1] = sock
    sock:send_some("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n", 0)
    pause(8)
    sock:reset()
end

acts["garbage"] = function(self, target)
    local sock = connect(self, math.random(2) == 1 and target.port or target.tls_port)
    local bytes = {}
    for i = 1, math.random(1, 400) do bytes[i] = string.char(math.random(0, 255)) end
    sock:send_some(table.concat(bytes) .. "\r\n\r\n", 0)
    take_all(self, sock)
end

acts["a cut TLS handshake"] = function(self, target)
    local sock = connect(self, target.tls_port)
    sock:send_some(HELLO:sub(1, math.random(1, #HELLO - 1)), 0)
    local way = math.random(4)
    if way == 1 then
        sock:reset()
    elseif way == 2 then
        sock:close()
    elseif way == 3 then
        sock:shutdown()
        take_all(self, sock)
    else
        take_all(self, sock)
    end
end

acts["a reset"] = function(self, target)
    local sock = connect(self, target.port)
    sock:send_some("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n", 0)
    if math.random(2) == 1 then pause(0.05) end
    sock:reset()
end

acts["a half-closed connection"] = function(self, target)
    local sock = connect(self, target.port)
    sock:send_some("GET /lua/wait HTTP/1.1\r\nHost: a\r\n\r\n", 0)
    sock:shutdown()
    take_all(self, sock)
end

local names = {}
for name in pairs(acts) do names[#names + 1] = name end
table.sort(names)

-- Clients of these servers; complain(text) is called when a server does not do what it should.
function clients.new(targets, number, complain)
    local self = setmetatable({targets = targets, complain = complain, actors = {}, count = 0}, clients)
    for i = 1, number do
        self.actors[i] = {wake = wire.time() + math.random(), socks = {}, complain = complain}
    end
    return self
end

local function close_all(actor)
    for _, sock in ipairs(actor.socks) do sock:close() end
    actor.socks = {}
end

local function begin(self, actor)
    local target = self.targets[math.random(#self.targets)]
    actor.act = names[math.random(#names)]
    self.count = self.count + 1
    actor.run = coroutine.create(function() acts[actor.act](actor, target) end)
end

-- Let each client whose pause is over continue.
function clients:step()
    local now = wire.time()
    for _, actor in ipairs(self.actors) do
        if now >= actor.wake then
            if not actor.run then begin(self, actor) end
            local is_well, seconds = coroutine.resume(actor.run)
            if not is_well then
                self.complain(actor.act .. ": " .. tostring(seconds))
            end
            if coroutine.status(actor.run) == "dead" then
                close_all(actor)
                actor.run, seconds = nil, math.random()
            end
            actor.wake = wire.time() + seconds
        end
    end
end

-- Close all connections, so that what a server still has open is its own fault.
function clients:rest()
    for _, actor in ipairs(self.actors) do
        if actor.run then coroutine.close(actor.run) end
        actor.run = nil
        close_all(actor)
    end
end

return clients
