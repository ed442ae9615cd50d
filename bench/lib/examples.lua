-- SPDX-License-Identifier: MIT
--
-- What: the examples in Lua, each beside its twin in Node (bench/peers/node), which does the same
-- and answers with the same bytes.
-- Place: bench.lua's row "lua-examples". Its client is limit-client where replies have one length,
-- sxe-http where they do not, and the driver itself where it is no HTTP that is spoken.
--
-- A load is a function(server, bench) -> {count =, seconds =} that puts load on a server for as
-- long as the options say, and raises if something is wrong. What one of these costs the server is
-- taken from the clocks of all its threads; what else ran meanwhile is what was lost.

local tables = require "tables"

local BUSY_MIN = 0.9 -- of a CPU: a server that has less to do is not what limits the rate

local examples = {}

-- ---- Clocks ----

local TICKS = 100 -- a second, in /proc/stat, whatever the kernel's own

local function read_line(path)
    local file <close> = assert(io.open(path))
    return file:read("l") or ""
end

-- Seconds that a process and those which it started were on a CPU, with all their threads.
local function cpu_of(pid)
    local sum, pids = 0, {pid}
    for child in read_line(("/proc/%d/task/%d/children"):format(pid, pid)):gmatch("%d+") do
        pids[#pids + 1] = tonumber(child)
    end
    for _, each in ipairs(pids) do
        local pipe <close> = io.popen(("cat /proc/%d/task/*/schedstat"):format(each))
        for line in pipe:lines() do
            sum = sum + line:match("%d+") / 1e9
        end
    end
    return sum
end

-- Of the driver and its clients, when these have ended.
local function cpu_of_us()
    local sum, numbers = 0, {}
    for word in read_line("/proc/self/stat"):match("%) (.*)"):gmatch("%S+") do
        numbers[#numbers + 1] = tonumber(word) or 0
    end
    for i = 12, 15 do -- user and system time, and that of children
        sum = sum + numbers[i]
    end
    return sum / TICKS
end

-- Of the whole machine.
local function cpu_of_all()
    local user, nice, system = read_line("/proc/stat"):match("(%d+) (%d+) (%d+)")
    return (user + nice + system) / TICKS
end

-- ---- Servers ----

local function is_listening(port)
    local good, sock = pcall(wire.connect, "127.0.0.1", port)
    if good then
        sock:close()
    end
    return good
end

-- Starts a server, "@" among the words being the port.
local function launch(words, bench)
    local port = bench.port()
    local command = {cpu = bench.server_cpu}
    for i, word in ipairs(words) do
        command[i] = word == "@" and tostring(port) or word
    end
    local proc = wire.spawn(command)
    for _ = 1, 1000 do
        if is_listening(port) then
            return {proc = proc, pid = proc:pid(), port = port}
        end
        wire.sleep(0.01)
    end
    error(words[1] .. " did not start: " .. proc:errors())
end

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
    local client <close> = wire.spawn{
        wire.program("bench/limit-client"), "-p", tostring(server.port), "-u", target, "-c",
        tostring(connections), "-w", "0", cpu = bench.client_cpu, table.unpack(options)}
    local line = client:line(60) or ""
    if client:wait(60) ~= 0 then
        error(client:errors() .. line)
    end
    return {count = tonumber(line:match('"requests":(%d+)')),
            seconds = tonumber(line:match('"seconds":([%d.]+)'))}
end

-- Replies to one target, each of the same length.
local function gets(target, connections)
    return function(server, bench)
        return run_limit_client(server, target, connections or 64,
                                {"-d", tostring(bench.options.seconds)}, bench)
    end
end

-- Replies of any length with one of these statuses.
local function gets_of_all_lengths(statuses)
    return function(server, bench)
        local client <close> = wire.spawn{
            wire.program("sxe-http"), "-q", "-c", "64", "-d", tostring(bench.options.seconds),
            "--expect-status", statuses, ("http://127.0.0.1:%d/"):format(server.port),
            cpu = bench.client_cpu}
        local output = client:output(60)
        local seconds, rate =
            output:match("time for all queries%s*: ([%d.]+) seconds or ([%d.]+)")
        local status = client:wait(60)
        if (status ~= 0 and status ~= 4) or not rate then -- 4: the client may be what is measured
            error(client:errors() .. output)
        end
        return {count = rate * seconds, seconds = tonumber(seconds)}
    end
end

-- Each connection asks twice for a reply that takes a second; of one digit.
local function sleeps(server, bench)
    local connections = bench.options.smoke and 50 or 5000
    return run_limit_client(server, "/?number=8", connections, {"-n", "2"}, bench)
end

local function hear(sock, expected)
    local got = sock:recv(#expected)
    if got ~= expected then
        error(("%q, not %q"):format(got, expected))
    end
end

-- Says this on all connections, and again on each that got what is expected for it.
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
    until wire.time() - start >= bench.options.seconds
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

-- Each says a line, and hears the lines of all others. What counts is the lines heard.
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

-- Events that come each second on each stream: as many for one as for the other.
local function ticks(server)
    local socks <close> = connect_all(server, 400)
    for _, sock in ipairs(socks) do
        sock:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    end
    local start, count = wire.time(), 0
    for _ = 1, 3 do
        for _, sock in ipairs(socks) do
            sock:recv_until("event: tick\ndata: ")
            count = count + 1
        end
    end
    return {count = count, seconds = wire.time() - start}
end

-- MB that arrive in a file.
local function uploads(server, bench)
    local body = ("0123456789abcde\n"):rep(1000000)
    local start, count = wire.time(), 0
    repeat
        local reply = ask(server, "PUT /film", body)
        if reply.status ~= 201 then
            error(reply.raw)
        end
        count = count + #body / 1e6
    until wire.time() - start >= bench.options.seconds
    return {count = count, seconds = wire.time() - start}
end

-- ---- The examples ----

local FRUIT = ("pear,apple,fig,cherry,"):rep(45) .. "plum"

-- name: of the script; program, arguments: how it is run; load, unit: what counts; post: what is
-- posted before, into a new file; target, expected: of a reply that is looked at before.
local cases = {
    {name = "hello", program = "sxe-httpd", load = gets("/"), target = "/",
     expected = "^Hello, World!\n$"},
    {name = "router", program = "sxe-lua", load = gets("/users/1"),
     post = {"/users", '{"name":"Ann"}'}, target = "/users/1", expected = '"id":1'},
    {name = "random", program = "sxe-httpd", load = sleeps, target = "/?number=8",
     expected = "^%d$"},
    {name = "read-sort", program = "sxe-lua", arguments = {"DIRECTORY"}, load = gets("/fruit"),
     post = {"/fruit", FRUIT}, target = "/fruit", expected = "^apple,apple,"},
    {name = "static", program = "sxe-lua", arguments = {"DIRECTORY"}, load = gets("/hello"),
     target = "/hello", expected = "^Hello, World!$"},
    {name = "counter", program = "sxe-httpd", load = gets_of_all_lengths("200"), target = "/",
     expected = "^/: 1\n$"},
    {name = "rate-limit", program = "sxe-httpd", load = gets_of_all_lengths("200,429"),
     target = "/", expected = "^9 left\n$"},
    {name = "sse", program = "sxe-httpd", load = ticks, unit = "events"},
    {name = "upload", program = "sxe-lua", arguments = {"DIRECTORY"}, load = uploads, unit = "MB"},
    {name = "echo", program = "sxe-lua", load = echoes, unit = "echoes"},
    {name = "chat", program = "sxe-lua", load = chats, unit = "lines heard"},
    {name = "proxy", program = "sxe-lua", arguments = {"127.0.0.1", "BEHIND", "0.001"},
     load = gets("/", 256), target = "/", expected = ""},
}

local function command_of(language, case, bench)
    local script = ("examples/lua/%s.lua"):format(case.name)
    local command = {wire.program("sxe-lua"), script, "@"}
    if language == "Node" then
        command = {wire.has("node"), ("bench/peers/node/%s.js"):format(case.name), "@"}
    elseif case.program == "sxe-httpd" then
        command = {wire.program("sxe-httpd"), "-c", "6000", "-p", "@", "--lua", script}
    end
    for _, word in ipairs(case.arguments or {}) do
        command[#command + 1] = bench.words[word] or word
    end
    return command
end

local function prepare(case, server, bench)
    if case.post then
        os.remove(bench.words.DIRECTORY .. case.post[1])
        ask(server, "POST " .. case.post[1], case.post[2])
    end
    if case.target then
        look(server, case.target, case.expected)
    end
    if case.load ~= sleeps and case.load ~= ticks then -- Node compiles what is used often
        case.load(server, bench)
    end
end

local function measure(case, server, bench)
    prepare(case, server, bench)
    local start, all, us, behind, cpu = wire.time(), cpu_of_all(), cpu_of_us(),
                                        cpu_of(bench.behind), cpu_of(server.pid)
    local result = case.load(server, bench)
    cpu, behind, us, all = cpu_of(server.pid) - cpu, cpu_of(bench.behind) - behind,
                           cpu_of_us() - us, cpu_of_all() - all
    return {rate = result.count / result.seconds, server_us = cpu / result.count * 1e6,
            busy = cpu / result.seconds,
            lost = (all - us - behind - cpu) / (wire.time() - start)}
end

-- ---- The table ----

-- As bench.lua's run_rounds wants it.
local function contender_of(language, case, bench)
    return {
        name = language,
        start = function() return launch(command_of(language, case, bench), bench) end,
        client = function(server)
            local good, result = pcall(measure, case, server, bench)
            return good and result or {failed = case.name .. ": " .. result}
        end}
end

-- Adds its line; false when it failed. The second result: the share of a CPU that Lua had.
local function add_example(case, block, bench)
    local row, cells = {looks_itself = true}, {case.name, case.unit or "requests"}
    local contenders = {contender_of("Lua", case, bench),
                        wire.has("node") and contender_of("Node", case, bench)}
    local rounds = bench.run_rounds(contenders, row)
    block.rows[#block.rows + 1] = cells
    if row.noisy then
        block.notes[#block.notes + 1] = ("%s: %s"):format(case.name, row.noisy)
    end
    if #rounds == 0 then
        return false, 1
    end
    for _, contender in ipairs(contenders) do
        cells[#cells + 1] = tables.with_range(bench.column(rounds, contender.name, "rate"))
        cells[#cells + 1] = tables.median(bench.column(rounds, contender.name, "server_us"), "%.1f")
    end
    for _, field in ipairs(contenders[2] and {"rate", "server_us"} or {}) do
        cells[#cells + 1] = ("%.2f"):format(bench.ratio(rounds, "Lua", "Node", field))
    end
    return true, tables.spread(bench.column(rounds, "Lua", "busy"))
end

-- bench has bench.lua's options and functions run_rounds, column, ratio, port; server_cpu,
-- client_cpu; the process behind the proxy, and what words of the arguments stand for.
function examples.bench(bench)
    local block = tables.add(
        ("Examples, one CPU (median of %d rounds of %g s)"):format(bench.options.rounds,
                                                                    bench.options.seconds),
        {"example", "what counts", "Lua, a second (min-max)", "µs of CPU each",
         "Node, a second (min-max)", "µs of CPU each", "Lua ÷ Node", "of CPU"})
    local good, idle = true, {}
    for _, case in ipairs(cases) do
        local is_good, busy = add_example(case, block, bench)
        good = is_good and good
        if busy < BUSY_MIN then
            idle[#idle + 1] = case.name
        end
    end
    if #idle > 0 then
        block.notes[#block.notes + 1] =
            "in Lua not at the limit of a CPU, so that the rates say less: "
            .. table.concat(idle, ", ")
    end
    if not wire.has("node") then
        block.notes[#block.notes + 1] = "not compared: Node is not installed"
    end
    tables.print(block)
    return good
end

return examples
