-- SPDX-License-Identifier: MIT
--
-- What: a row for each example in Lua, beside its twin in Node (bench/peers/node), which does the
-- same and answers with the same bytes.
-- Place: rows-lua.lua takes the rows. The client is limit-client if all replies have one length,
-- sxe-http if they do not, and the driver itself if the protocol is not HTTP.
--
-- A load is a function(server, bench) -> {count =, seconds =} that puts load on a server for
-- bench.seconds, and raises an error if something is wrong. The cost of one request is the CPU time
-- of all threads of the server, divided by count.

local examples = {}

-- ---- Clients ----

local function ask(server, line, body)
    local sock <close> = wire.connect("127.0.0.1", server.port)
    sock:send(("%s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"):format(line, #body, body))
    return sock:read_reply()
end

local function look(server, target, expected)
    local body = ask(server, "GET " .. target, "").body
    if not body:find(expected) then
        error(("GET %s: %q, not %q"):format(target, body, expected))
    end
end

local function run_limit_client(server, target, connections, options, bench)
    local client <close> = bench.spawn{
        wire.program("bench/limit-client"), "-p", server.port, "-u", target, "-c", connections,
        "-w", 0, table.unpack(options)}
    local line = client:line(60) or ""
    if client:wait(60) ~= 0 then
        error(client:errors() .. line)
    end
    return {count = tonumber(line:match('"requests":(%d+)')),
            seconds = tonumber(line:match('"seconds":([%d.]+)'))}
end

-- Measure requests for one target whose replies have the same length.
local function gets(target, connections)
    return function(server, bench)
        return run_limit_client(server, target, connections or 64,
                                {"-d", bench.seconds}, bench)
    end
end

-- Measure requests whose replies have any length and one of these statuses.
local function gets_of_all_lengths(statuses)
    return function(server, bench)
        local client <close> = bench.spawn{
            wire.program("sxe-http"), "-q", "-c", 64, "-d", bench.seconds, "--expect-status",
            statuses, ("http://127.0.0.1:%d/"):format(server.port)}
        local output = client:output(60)
        local seconds, rate =
            output:match("time for all queries%s*: ([%d.]+) seconds or ([%d.]+)")
        local status = client:wait(60)
        if (status ~= 0 and status ~= 4) or not rate then -- 4: the client may be the bottleneck
            error(client:errors() .. output)
        end
        return {count = rate * seconds, seconds = tonumber(seconds)}
    end
end

-- Each connection asks twice for a reply of one digit that takes a second.
local function sleeps(server, bench)
    local connections = bench.smoke and 50 or 5000
    return run_limit_client(server, "/?number=8", connections, {"-n", "2"}, bench)
end

local function hear(sock, expected)
    local got = sock:recv(#expected)
    if got ~= expected then
        error(("%q, not %q"):format(got, expected))
    end
end

-- Send the text on all connections, and again on each connection that got the expected reply.
local function say_again_and_again(socks, text, expected, bench)
    local start, count = wire.time(), 0
    for _, sock in ipairs(socks) do
        sock:send(text)
    end
    repeat
        for _, sock in ipairs(socks) do
            hear(sock, expected)
            sock:send(text)
        end
        count = count + #socks
    until wire.time() - start >= bench.seconds
    local seconds = wire.time() - start
    for _, sock in ipairs(socks) do
        hear(sock, expected)
    end
    return {count = count, seconds = seconds}
end

local function close_all(socks)
    for _, sock in ipairs(socks) do
        sock:close()
    end
end

local function connect_all(server, number)
    local socks = setmetatable({}, {__close = close_all})
    for i = 1, number do
        socks[i] = wire.connect("127.0.0.1", server.port)
    end
    return socks
end

local function echoes(server, bench)
    local socks <close> = connect_all(server, 64)
    return say_again_and_again(socks, "Hello, World!\n", "Hello, World!\n", bench)
end

-- Each client sends a line and receives the lines of all other clients. The received lines are
-- counted.
local function chats(server, bench)
    local members = 32
    local socks <close> = connect_all(server, members)
    for i, sock in ipairs(socks) do
        sock:recv_until("your name? ")
        sock:send("member\n")
        for j = 1, i - 1 do
            socks[j]:recv_until("member has come\n")
        end
    end
    local result =
        say_again_and_again(socks, "Hello\n", ("member: Hello\n"):rep(members - 1), bench)
    result.count = result.count * (members - 1)
    return result
end

-- Each stream sends one event a second, in both languages.
local function ticks(server)
    local socks <close> = connect_all(server, 400)
    for _, sock in ipairs(socks) do
        sock:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    end
    local start, count = wire.time(), 0
    for _ = 1, 2 do
        for _, sock in ipairs(socks) do
            sock:recv_until("event: tick\ndata: ")
            count = count + 1
        end
    end
    return {count = count, seconds = wire.time() - start}
end

-- Measure the MB a second that arrive in a file.
local function uploads(server, bench)
    local body = ("0123456789abcde\n"):rep(1000000)
    local start, count = wire.time(), 0
    repeat
        local reply = ask(server, "PUT /film", body)
        if reply.status ~= 201 then
            error(reply.raw)
        end
        count = count + #body / 1e6
    until wire.time() - start >= bench.seconds
    return {count = count, seconds = wire.time() - start}
end

-- ---- The examples ----

local FRUIT = ("pear,apple,fig,cherry,"):rep(45) .. "plum"

-- name: the script's; program, arguments: how the script is run; load, unit, one: what is counted;
-- post: a body that is posted before the run, into a new file; target, expected: a request before
-- the run, and its reply.
local cases = {
    {name = "hello", work = "a text is answered",
     program = "sxe-httpd", load = gets("/"), target = "/",
     expected = "^Hello, World!\n$"},
    {name = "router", work = "a user is found by the number in the path, and sent as JSON",
     program = "sxe-lua", load = gets("/users/1"),
     post = {"/users", '{"name":"Ann"}'}, target = "/users/1", expected = '"id":1'},
    {name = "random", work = "5,000 connections ask twice each for a reply that takes a second",
     program = "sxe-httpd", load = sleeps, target = "/?number=8",
     expected = "^%d$"},
    {name = "read-sort", work = "a file's parts are sorted and sent",
     program = "sxe-lua", arguments = {"DIRECTORY"}, load = gets("/fruit"),
     post = {"/fruit", FRUIT}, target = "/fruit", expected = "^apple,apple,"},
    {name = "static", work = "a file of 13 bytes is sent",
     program = "sxe-lua", arguments = {"DIRECTORY"}, load = gets("/hello"),
     target = "/hello", expected = "^Hello, World!$"},
    {name = "counter", work = "requests are counted by path",
     program = "sxe-httpd", load = gets_of_all_lengths("200"), target = "/",
     expected = "^/: 1\n$"},
    {name = "rate-limit", work = "requests of an address are counted, and most are refused",
     program = "sxe-httpd", load = gets_of_all_lengths("200,429"),
     target = "/", expected = "^9 left\n$"},
    {name = "sse", work = "400 streams have an event a second",
     program = "sxe-httpd", load = ticks, unit = "events", one = "event"},
    {name = "upload", work = "a body of 16 MB is written to a file",
     program = "sxe-lua", arguments = {"DIRECTORY"}, load = uploads, unit = "MB", one = "MB"},
    {name = "echo", work = "64 connections hear what they say",
     program = "sxe-lua", load = echoes, unit = "echoes", one = "echo"},
    {name = "chat", work = "32 members hear what each of them says",
     program = "sxe-lua", load = chats, unit = "lines", one = "line"},
    {name = "proxy",
     work = "256 connections ask a server through a proxy that adds a millisecond each way",
     program = "sxe-lua", arguments = {"127.0.0.1", "BACKEND", "0.001"},
     load = gets("/", 256), target = "/", expected = ""},
}

-- In the arguments, DIRECTORY stands for the server's own directory, and BACKEND for the port of
-- another server.
local function command_of(language, case, words)
    local script = ("examples/lua/%s.lua"):format(case.name)
    local command = {wire.program("sxe-lua"), script, words.PORT}
    if language == "Node" then
        command = {wire.has("node"), ("bench/peers/node/%s.js"):format(case.name), words.PORT}
    elseif case.program == "sxe-httpd" then
        command = {wire.program("sxe-httpd"), "-c", 6000, "-p", words.PORT, "--lua", script}
    end
    for _, word in ipairs(case.arguments or {}) do
        command[#command + 1] = words[word] or word
    end
    return command
end

local function write_file(path, text)
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
end

-- Start the server that the proxy passes requests to.
local function start_behind(bench)
    local port = bench.port()
    local proc = bench.spawn{wire.program("bench/limit-server"), "-p", port}
    assert(proc:line(20), "the server behind the proxy did not start")
    return proc, port
end

local function contender(language, case)
    return {name = language, title = language, needs = {language == "Node" and "node" or nil},
            package = "nodejs", version = language == "Node" and "node --version" or nil,
            start = function(context)
                write_file(context.scratch .. "/hello", "Hello, World!")
                local proc = context.spawn(command_of(language, case, {
                    PORT = context.port, DIRECTORY = context.scratch, BACKEND = context.backend}))
                context.wait_ready(proc)
                return context.server(proc)
            end}
end

local function prepare(case, server, bench)
    if case.post then
        ask(server, "POST " .. case.post[1], case.post[2])
    end
    if case.target then
        look(server, case.target, case.expected)
    end
    if case.load ~= sleeps and case.load ~= ticks then -- Node compiles code that is used often
        case.load(server, bench)
    end
end

local function run(case)
    return function(bench, peer)
        local proc, port
        if case.name == "proxy" then
            proc, port = start_behind(bench)
        end
        local _ <close> = proc
        local server <close> = bench.start(peer, {backend = port, connections = 6000})
        prepare(case, server, bench)
        local stop = bench.clocks(server)
        local result = case.load(server, bench)
        local times = stop()
        return {value = result.count / result.seconds, cpu_server = times.cpu_server,
                cpu_client = times.cpu_client,
                more = {server_us = times.cpu_server * times.seconds / result.count * 1e6}}
    end
end

-- A row for each example.
function examples.rows()
    local list = {}
    for _, case in ipairs(cases) do
        local unit = case.unit or "requests"
        list[#list + 1] = {
            name = "example-" .. case.name, group = "examples", unit = unit .. "/s",
            title = ("examples/lua/%s.lua and its twin in Node"):format(case.name),
            work = case.work, reference = "Node", ours = "Lua", digits = 0,
            budget = case.load == ticks and 18 or 9,
            command = ("sxe-lua examples/lua/%s.lua PORT; node bench/peers/node/%s.js PORT")
                :format(case.name, case.name),
            checks = case.target and "a reply by hand; then status and length of each"
                     or "every byte that comes back",
            void = "a wrong reply; 0.08 of a CPU taken by others. Where the server's CPU is not "
                   .. "full (it waits by design, or the client is no faster), the rate says "
                   .. "little, and µs a reply more",
            peers = {contender("Lua", case), contender("Node", case)}, run = run(case),
            columns = {{"server_us", "server µs/" .. (case.one or "request"), 1}},
            seconds = 0.25, asked_only = case.name == "random"} -- row S3 is the same
    end
    return list
end

return examples
