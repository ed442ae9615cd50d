-- SPDX-License-Identifier: MIT
--
-- What: checks that each peer plays each service that it lists, and that all peers give the same
-- reply to one request: status, length and bytes of the body. A connection must stay open, and
-- close when the request asks for that. A peer that answers otherwise does not do the same work.
-- Place: bench.lua --smoke; nothing is measured here.

local peers = require "peers"
local servers = require "servers"

local check = {}

local FILES = {["page.html"] = "<!DOCTYPE html>\n<title>Hello</title>\n" .. ("<p>Text.\n"):rep(400),
               ["13"] = "Hello, World!", ["1"] = "pear, apple, fig, "}

-- ---- What a reply must be ----

local function expect(good, ...)
    if not good then
        error(string.format(...), 0)
    end
end

-- The members of a JSON object without inner objects, sorted.
local function members(json)
    local list = {}
    for member in (json:match("^{(.*)}$") or json):gmatch("[^,]+") do
        list[#list + 1] = member
    end
    table.sort(list)
    return list
end

-- The part of a reply that must be equal for all peers, as a string.
local function essence(service, reply)
    local body = reply.body
    expect(reply.status == 200, "status %d", reply.status)
    expect(tonumber(reply.headers["content-length"]) == #body, "Content-Length %s of %d bytes",
           reply.headers["content-length"] or "none", #body)
    expect(reply.headers["content-type"] or service.is_old, "no Content-Type")
    if service.body then
        expect(body == service.body, "the body is %q", body:sub(1, 80))
    elseif service.pattern then
        expect(body:find(service.pattern), "the body is %q", body:sub(1, 80))
        expect(#body == (service.length or 1), "the body has %d bytes", #body)
        return tostring(#body)
    elseif service.fields then
        local found = table.concat(members(body), ",")
        expect(found == table.concat(service.fields, ","), "the body is %q", body)
        return #body .. " " .. found
    end
    return body
end

-- ---- One peer, one service ----

local CLOSE = "Connection: close\r\n"

local function request_of(service, more)
    local length = service.post and ("Content-Length: %d\r\n"):format(#service.post) or ""
    return ("%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s\r\n%s"):format(
        service.post and "POST" or "GET", service.target, length, more or "", service.post or "")
end

-- Send two requests on a connection, then one that closes the connection. A service whose reply
-- takes a second is asked only once, by begin().
local function ask_thrice(sock, service)
    local first
    for _ = 1, service.once and 0 or 2 do
        sock:send(request_of(service))
        local said = essence(service, sock:read_reply())
        expect(said == (first or said), "the second reply is another")
        first = said
    end
    if not service.once then
        sock:send(request_of(service, CLOSE))
    end
    local last = essence(service, sock:read_reply())
    expect(last == (first or last), "the last reply is another")
    return last
end

local function post(port, target, body)
    local sock <close> = wire.connect("127.0.0.1", port)
    sock:send(("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s")
        :format(target, #body, body))
    local status = sock:read_reply().status
    expect(status == 204, "POST %s: status %d", target, status)
end

local LONGEST = 30 -- seconds that a server has at most for its first resumed session

-- Returns the client's output, which is good, or says that no request was answered.
local function run_tls_client(house, words, more)
    local all = table.move(words, 1, #words, 1, {})
    local proc <close> = servers.spawn(table.move(more, 1, #more, #all + 1, all), house.client_cpu)
    local output = proc:output(60)
    expect(proc:wait(60) == 0 or output:find('"requests":0,.*"errors":0'), "%s%s", proc:errors(),
           output)
    return output
end

-- Have limit-tls-client check the replies of a service over TLS: on kept connections, then on
-- connections that resume the session of the one before.
local function check_tls(house, server, service)
    local path = house.scratch .. "/expected"
    local file <close> = assert(io.open(path, "wb"))
    file:write(service.body)
    file:close()
    local words = {wire.program("bench/limit-tls-client"), "-p", server.port, "-c", 4, "-e", path}
    local output = run_tls_client(house, words, {"-n", 3})
    expect(not output:find('"requests":0', 1, true), "no request is answered: %s", output)
    expect(output:find('"TLSv1.3"', 1, true), "it does not speak TLS 1.3: %s", output)
    local seconds = 0.1
    repeat -- a busy machine may answer no request in a short time
        output = run_tls_client(house, words, {"-r", "-w", seconds, "-d", seconds})
        seconds = seconds * 3
    until not output:find('"resumed":0', 1, true) or seconds > LONGEST
    expect(not output:find('"resumed":0', 1, true), "no session is resumed: %s", output)
end

local function write_files(root)
    for name, text in pairs(FILES) do
        local file <close> = assert(io.open(root .. "/" .. name, "wb"))
        file:write(text)
    end
end

-- Start a peer, and connect to it.
local function begin(house, peer, name)
    local server = servers.start(house, peer, {service = name, connections = 16,
                                               redis_port = house.redis_port})
    if peers.services[name].is_tls then
        return {peer = peer, server = server}
    end
    local sock = wire.connect("127.0.0.1", server.port)
    sock:timeout(20)
    if peers.services[name].once then
        sock:send(request_of(peers.services[name], CLOSE))
    end
    return {peer = peer, server = server, sock = sock}
end

-- Have a peer play a service. Returns its replies as one string.
local function play(house, player, name)
    local service, port = peers.services[name], player.server.port
    if service.is_tls then
        check_tls(house, player.server, service)
        return service.body
    end
    local said = ask_thrice(player.sock, service)
    if name == "file" then
        expect(said == FILES["page.html"], "page.html is not the file")
        expect(essence({}, servers.ask(port, "/13")) == FILES["13"], "13 is not the file")
    elseif name == "sort" then
        post(port, "/1", "cherry, ")
        said = essence({}, servers.ask(port, "/1"))
        expect(said == ", apple, cherry, fig, pear", "it is %q", said)
    end
    -- The limit program does not read its requests, so it does not know when to close.
    if player.peer.name ~= "limit" and not service.is_old then
        expect(player.sock:eof(2), "the connection stays open")
    end
    return said
end

-- ---- All services and their peers ----

local function fail(report, peer, name, why)
    report.failures[#report.failures + 1] = ("%s, %s: %s"):format(peer.title, name, why)
end

-- Start all peers that play a service.
local function gather(house, name, report)
    local players = setmetatable({}, {__close = function(list)
        for _, player in ipairs(list) do
            player.server.stop()
        end
    end})
    for _, peer in ipairs(peers) do
        local why = peer.serves[name] and peer.missing()
        if why then
            report.skipped[peer.title] = why
        elseif peer.serves[name] and not (name == "file" and peer.name == "limit") then
            report.checks = report.checks + 1 -- the limit program knows only the length of a file
            local good, player = pcall(begin, house, peer, name)
            if good then
                players[#players + 1] = player
            else
                fail(report, peer, name, player)
            end
        end
    end
    return players
end

-- The other peers must agree with the first peer that plays the service.
local function check_service(house, name, report)
    local players <close> = gather(house, name, report)
    local first
    for _, player in ipairs(players) do
        write_files(house.root)
        local good, said = pcall(play, house, player, name)
        if good and first and said ~= first then
            good, said = false, "it does not answer as " .. players[1].peer.title .. " does"
        end
        first = first or good and said
        if not good then
            fail(report, player.peer, name, said)
        end
    end
end

-- house: root, scratch and server_cpu, as for servers.start. Returns {checks = how many, failures =
-- {texts}, skipped = {[title] = why}}.
function check.run(house)
    local report = {checks = 0, failures = {}, skipped = {}}
    local redis <close> = wire.has("redis-server") and peers.start_redis(house)
    house = setmetatable({redis_port = redis and redis.port}, {__index = house})
    for name in pairs(peers.services) do
        if name ~= "redis" or redis then
            check_service(house, name, report)
        end
    end
    return report
end

return check
