-- SPDX-License-Identifier: MIT
--
-- What: our server and our load generator measured beside the physical limit and nginx.
--
--     build/release/test/wire bench/bench.lua [rows] [--rounds 7] [--seconds 1]
--                                             [--markdown FILE] [--smoke]
--     rows: 64 1024 10000 (keep-alive connections) pipeline files lua lua-examples memory client
--           sockets syscalls micro; without any, all
--
-- How: the server has CPU 0, the client CPU 1. Each run is a fresh server process on a fresh port.
-- The servers take turns within a round, and a ratio is that of two runs of the same round, because
-- the speed of a shared machine drifts; medians are taken over the rounds. A round in which others,
-- guests of the host or programs here, took more than 0.08 CPU, or in which anything failed, is
-- repeated, twice at most: after that the row is marked as noisy. Times of the server are its time
-- on a CPU (schedstat) within the measured time, without soft interrupts where the kernel accounts
-- those apart. What a server answers is looked at once a run, files byte by byte; the load generator
-- then counts lengths. --smoke is one round of 0.2 s, to see that all this works.

local clients = require "clients"
local examples = require "examples"
local scripts = require "scripts"
local tables = require "tables"

local LOST_MAX = 0.08
local REPEATS_MAX = 2
local SERVER_CPU, CLIENT_CPU = 0, 1

local options = {rounds = 7, seconds = 1, rows = {}}
local scratch -- the path of nginx's configuration; what begins with it is ours
local root -- the directory of the files that are served

local function leave(status)
    if scratch then
        os.execute("rm -rf " .. scratch .. "*")
    end
    os.exit(status, true)
end

local function fail(...)
    io.stderr:write("bench: ", string.format(...), "\n")
    leave(2)
end

-- ---- Small things ----

local function first_line(command)
    local pipe = io.popen(command .. " 2>&1")
    local line = pipe:read("l")
    pipe:close()
    return line or "?"
end

local function read_file(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    return text
end

local function write_file(path, text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
end

local function append(list, ...)
    for _, item in ipairs{...} do
        list[#list + 1] = item
    end
end

-- ---- Servers ----

-- A row says what is asked for, how, and of whom:
--     connections, depth   requests that a connection has outstanding
--     target, content      of a file: its path, and what it contains
--     keep_alive           replies say so
--     servers, references  who is measured, all without it; names of those to compare with
--     last_rate            what it came to, in replies a second

local function free_port()
    local listener <close> = wire.listen("127.0.0.1", 0)
    return listener:port()
end

-- As limit-client sends it.
local function request_to(port, row)
    return ("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"):format(row.target or "/", port)
end

-- Servers of ours say where they listen.
local function start_ours(command)
    local proc = wire.spawn(command)
    local line = proc:line(20)
    local port = line and line:match(":(%d+)/?$")
    if not port then
        fail("%s did not start: %s", command[1], proc:errors())
    end
    return {proc = proc, pid = proc:pid(), port = tonumber(port)}
end

-- Its reply is as long as our greeting, or its body as long as the file.
local function start_limit(row)
    local length = row.content and #row.content or 51
    local command = {wire.program("bench/limit-server"), "-l", tostring(length), cpu = SERVER_CPU}
    local port = 0
    if row.depth then
        port = free_port()
        append(command, "-r", tostring(#request_to(port, row)))
    end
    if row.keep_alive then
        append(command, "-k")
    end
    if row.wait then
        append(command, "-w", tostring(row.wait))
    end
    append(command, "-p", tostring(port))
    return start_ours(command)
end

local function start_httpd(row)
    local command = {wire.program("sxe-httpd"), "-p", "0", "-c", tostring(row.connections + 16),
                     cpu = SERVER_CPU}
    if row.content then
        append(command, "-r", root)
    end
    return start_ours(command)
end

-- With a configuration, whose @...@ are filled in.
local function start_nginx_with(path, row, more)
    local port = free_port()
    -- nginx closes idle connections when fewer than a sixteenth of its places are free.
    local places = row.connections + row.connections // 8 + 64
    local fields = {DIRECTORY = scratch .. ".d", ROOT = root, PORT = port, CONNECTIONS = places}
    for name, value in pairs(more) do
        fields[name] = value
    end
    write_file(scratch, (read_file(path):gsub("@(%u+)@", fields)))
    -- The limit of descriptors is raised to the hard one, as our servers do it themselves.
    local script = 'mkdir -p "$1.d"; ulimit -n "$(ulimit -Hn)"; exec "$0" -c "$1"'
    local proc = wire.spawn{"sh", "-c", script, wire.has("nginx"), scratch, cpu = SERVER_CPU}
    for _ = 1, 500 do
        local connected, sock = pcall(wire.connect, "127.0.0.1", port)
        if connected then
            sock:close()
            return {proc = proc, pid = proc:pid(), port = port}
        end
        wire.sleep(0.01)
    end
    fail("nginx did not start: %s", proc:errors())
end

local function start_nginx(row)
    return start_nginx_with("bench/peers/nginx.conf", row, {})
end

local servers = {
    {name = "limit", start = start_limit},
    {name = "sxe-httpd", start = start_httpd},
    {name = "nginx", start = start_nginx},
}

local function stop(server)
    server.proc:signal("KILL")
    server.proc:wait(20)
end

-- How long a server's reply is; nil when it is wrong, and why.
local function reply_length(server, row)
    local sock <close> = wire.connect("127.0.0.1", server.port)
    sock:send(request_to(server.port, row))
    local reply = sock:read_reply()
    if reply.status ~= 200 then
        return nil, "the first reply's status is " .. reply.status
    end
    if row.content and row.content ~= reply.body then
        return nil, "the first reply is not the file"
    end
    return #reply.raw
end

-- ---- One run ----

-- Seconds that a process was ready to run while another had its CPU.
local function waited(pid)
    return read_file(("/proc/%d/schedstat"):format(pid)):match("%d+ (%d+)") / 1e9
end

-- Waits for the client's line of results while looking at the clocks of both. Returns the line, and
-- a function that says which share of a CPU the server had ("busy") or both lacked ("lost") in the
-- last seconds before it.
local function watch(client, server)
    local samples = {}
    while not client:ready(0.02) do
        local _, _, busy = wire.cpu(server.pid)
        samples[#samples + 1] = {time = wire.time(), busy = busy,
                                 lost = waited(server.pid) + waited(client:pid())}
    end
    local finish = wire.time()
    return client:line(60), function(seconds, field)
        local first, last
        for _, sample in ipairs(samples) do
            if sample.time >= finish - seconds then
                first, last = first or sample, sample
            end
        end
        return first and last.time > first.time
            and (last[field] - first[field]) / (last.time - first.time) or 0
    end
end

local function parse_json(line)
    local result = {}
    for name, value in (line or ""):gmatch('"([%w_]+)":([%d.]+)') do
        result[name] = tonumber(value)
    end
    return result
end

local function limit_client(server, row, ...)
    return {wire.program("bench/limit-client"), "-p", tostring(server.port),
            "-c", tostring(row.connections), "-u", row.target or "/",
            "-P", tostring(row.depth or 1), cpu = CLIENT_CPU, ...}
end

-- limit-client for a given time. Its bytes are more exact than its replies where these are few.
local function run_limit_client(server, row, length)
    local client <close> = wire.spawn(limit_client(server, row,
        "-d", tostring(options.seconds), "-w", tostring(options.seconds * 0.3)))
    local line, share = watch(client, server)
    local result = parse_json(line)
    if client:wait(60) ~= 0 or not result.requests or result.requests == 0 then
        return {failed = client:errors() .. (line or "")}
    end
    local rate = result.bytes / length / result.seconds
    return {
        rate = rate, megabytes = result.bytes / result.seconds / 1e6,
        connects = result.connects / result.connect_seconds,
        server_us = share(result.seconds, "busy") / rate * 1e6,
        lost = share(result.seconds, "lost"),
        p50 = result.p50_us, p99 = result.p99_us,
    }
end

local function run(contender, row)
    local server = contender.start(row)
    local length, wrong = 0, nil
    if not row.looks_itself then
        length, wrong = reply_length(server, row)
    end
    local result = wrong and {failed = wrong}
        or (contender.client or run_limit_client)(server, row, length)
    result.reply_length = length
    row.last_rate = result.rate or row.last_rate
    stop(server)
    return result
end

-- ---- Rounds ----

-- One round: every contender once. Nil when the machine or a contender spoiled it, and why.
local function run_round(contenders, row)
    local steal, start, lost, results = wire.steal(), wire.time(), 0, {}
    for _, contender in ipairs(contenders) do
        local result = run(contender, row)
        if result.failed then
            return nil, contender.name .. ": " .. result.failed:gsub("%s+$", "")
        end
        results[contender.name] = result
        lost = math.max(lost, result.lost or 0)
    end
    local stolen = (wire.steal() - steal) / (wire.time() - start)
    if stolen + lost > LOST_MAX and not options.smoke then
        return nil, ("%.2f CPU taken by others"):format(stolen + lost), results
    end
    return results
end

-- All rounds of a row; row.noisy says what was wrong with it.
local function run_rounds(contenders, row)
    local rounds = {}
    for number = 1, options.rounds do
        local results, why, spoiled
        for attempt = 0, options.smoke and 0 or REPEATS_MAX do
            results, why, spoiled = run_round(contenders, row)
            if results then
                break
            end
            io.stderr:write(("  round %d, attempt %d: %s\n"):format(number, attempt + 1, why))
        end
        if not results then
            row.noisy = why
        end
        rounds[#rounds + 1] = results or spoiled
    end
    if #rounds == 0 then
        row.failed = row.noisy
    end
    return rounds
end

local function column(rounds, name, field)
    local values = {}
    for i, results in ipairs(rounds) do
        values[i] = results[name][field]
    end
    return values
end

-- The median of the ratios to the first contender within each round.
local function ratio(rounds, name, reference, field)
    local values = {}
    for i, results in ipairs(rounds) do
        values[i] = results[name][field] / results[reference][field]
    end
    return (tables.spread(values))
end

local function add_row_notes(block, row)
    if row.failed then
        block.notes[#block.notes + 1] = "FAILED: " .. row.failed
    elseif row.noisy then
        block.notes[#block.notes + 1] = "noisy: " .. row.noisy
    end
    tables.print(block)
end

-- ---- Rows ----

local function present_servers()
    local present = {}
    for _, server in ipairs(servers) do
        if server.name == "nginx" and not wire.has("nginx") then
            print("nginx is not installed: skipped")
        else
            present[#present + 1] = server
        end
    end
    return present
end

local function has_name(list, name)
    for _, item in ipairs(list) do
        if item.name == name then
            return true
        end
    end
    return false
end

-- The columns of a table of servers: a title, and what stands below it for a server by name.
local function columns_of(rounds, contenders, row)
    local columns = {{"server", function(name) return name end}}
    local function add(title, show, field)
        columns[#columns + 1] =
            {title, function(name) return show(column(rounds, name, field)) end}
    end
    local function add_ratio(reference, field)
        if has_name(contenders, reference) then
            columns[#columns + 1] = {"÷ " .. reference, function(name)
                return ("%.2f"):format(ratio(rounds, name, reference, field))
            end}
        end
    end
    add("requests/s (min-max)", tables.with_range, "rate")
    for _, reference in ipairs(row.references) do
        add_ratio(reference, "rate")
    end
    if row.content then
        add("MB/s", tables.median, "megabytes")
    elseif not row.depth then
        add("connects/s (min-max)", tables.with_range, "connects")
        add_ratio("limit", "connects")
    end
    add("server µs/request", function(values) return tables.median(values, "%.2f") end, "server_us")
    add("p50 µs", tables.median, "p50")
    add("p99 µs", tables.median, "p99")
    add("reply bytes", tables.median, "reply_length")
    return columns
end

-- One table of servers.
local function bench_row(row, what)
    local contenders = row.servers or present_servers()
    local rounds = run_rounds(contenders, row)
    local columns = columns_of(rounds, contenders, row)
    local head = {}
    for i, each in ipairs(columns) do
        head[i] = each[1]
    end
    local block = tables.add(("%s, one CPU (median of %d rounds of %g s)")
                                :format(what, options.rounds, options.seconds), head)
    for _, server in ipairs(#rounds > 0 and contenders or {}) do
        local cells = {}
        for i, each in ipairs(columns) do
            cells[i] = each[2](server.name)
        end
        block.rows[#block.rows + 1] = cells
    end
    add_row_notes(block, row)
    return row.failed == nil
end

local function bench_connections(connections)
    return bench_row({connections = connections, references = {"limit"}},
                     tables.thousands(connections) .. " keep-alive connections")
end

local function bench_pipeline()
    return bench_row({connections = 64, depth = 16, references = {"limit"}},
                     "64 keep-alive connections, 16 requests at a time on each")
end

-- Each line is another, so that bytes from a wrong place of the file show.
local function numbered(length)
    local lines = {}
    for i = 1, length // 10 do
        lines[i] = ("%09d\n"):format(i)
    end
    return table.concat(lines)
end

local function bench_file(name, connections, content, measured, references)
    write_file(root .. "/" .. name, content)
    return bench_row({connections = connections, target = "/" .. name, content = content,
                      servers = measured, references = references},
                     ("A file of %s bytes, %d keep-alive connections")
                         :format(tables.thousands(#content), connections))
end

-- The limit program's body is the first file; the others would be longer than it sends at once.
local function bench_files()
    local all = present_servers()
    local good = bench_file("hello", 64, "Hello, World!", all, {"limit", "nginx"})
    local others = table.move(all, 2, #all, 1, {})
    good = bench_file("100k", 64, numbered(100000), others, {"nginx"}) and good
    return bench_file("10m", 16, numbered(10000000), others, {"nginx"}) and good
end

-- Scripts, each beside the C function that does the same.
local function bench_twins(case, bench)
    local contenders = scripts.contenders(case, bench)
    return bench_row({connections = 64, depth = case.depth, target = case.target,
                      servers = contenders, references = {"sxe, C"}}, case.what)
end

-- S3: each of 5,000 connections asks twice for a reply that takes a second.
local function run_sleepers(server, row)
    local client <close> = wire.spawn(limit_client(server, row, "-n", "2"))
    local result = parse_json(client:line(60))
    if client:wait(60) ~= 0 or result.requests ~= 2 * row.connections then
        return {failed = client:errors()}
    end
    return {seconds = result.seconds}
end

local function bench_sleepers(bench)
    local row = {connections = 5000, target = scripts.sleeper.target, wait = 1}
    local contenders = scripts.contenders(scripts.sleeper, bench)
    table.insert(contenders, 1, {name = "limit", start = start_limit})
    for _, contender in ipairs(contenders) do
        contender.client = run_sleepers
    end
    local rounds = run_rounds(contenders, row)
    local block = tables.add("10,000 requests at 5,000 at once, each a second's sleep, one CPU",
                             {"server", "seconds (min-max)", "÷ limit"})
    for _, contender in ipairs(#rounds > 0 and contenders or {}) do
        local median, low, high = tables.spread(column(rounds, contender.name, "seconds"))
        block.rows[#block.rows + 1] = {
            contender.name, ("%.2f (%.2f-%.2f)"):format(median, low, high),
            ("%.2f"):format(ratio(rounds, contender.name, "limit", "seconds"))}
    end
    add_row_notes(block, row)
    return row.failed == nil
end

local function bench_scripts()
    local bench = {spawn = start_ours, nginx = start_nginx_with, port = free_port, cpu = SERVER_CPU}
    local good = true
    for _, missing in ipairs(scripts.missing()) do
        print("not measured: " .. missing)
    end
    for _, case in ipairs(scripts.cases) do
        good = bench_twins(case, bench) and good
    end
    return (options.smoke or bench_sleepers(bench)) and good
end

local function bench_examples()
    local behind <close> = wire.spawn{wire.program("bench/limit-server"), "-l", "51", "-p", "0",
                                      cpu = CLIENT_CPU}
    write_file(root .. "/hello", "Hello, World!")
    return examples.bench{
        options = options, run_rounds = run_rounds, column = column, ratio = ratio,
        port = free_port, server_cpu = SERVER_CPU, client_cpu = CLIENT_CPU,
        behind = behind:pid(),
        words = {DIRECTORY = root, BEHIND = behind:line(20):match(":(%d+)/?$")}}
end

-- Load generators in limit-client's place.
local function bench_clients_at(connections)
    local row = {connections = connections, last_rate = 50000, keep_alive = true}
    local contenders = {{name = "limit-client", start = start_limit, client = run_limit_client}}
    for _, client in ipairs(clients.present()) do
        contenders[#contenders + 1] = {name = client.name, start = start_limit,
            client = function(server)
                return client.run(server, row, options.seconds, CLIENT_CPU)
            end}
    end
    local rounds = run_rounds(contenders, row)
    local block = tables.add(("Load generators, %s connections, against the limit server, one CPU each")
                             :format(tables.thousands(connections)),
                             {"client", "requests/s (min-max)", "÷ limit"})
    for _, client in ipairs(#rounds > 0 and contenders or {}) do
        block.rows[#block.rows + 1] = {
            client.name, tables.with_range(column(rounds, client.name, "rate")),
            ("%.2f"):format(ratio(rounds, client.name, "limit-client", "rate"))}
    end
    for _, missing in ipairs(clients.missing()) do
        block.notes[#block.notes + 1] = "not measured: " .. missing .. " is not installed"
    end
    add_row_notes(block, row)
    return row.failed == nil
end

local function bench_client()
    local good = bench_clients_at(64)
    return bench_clients_at(1024) and good
end

-- Sockets by the ten thousand: 2010's run, and as many as one machine's addresses and processes allow.
local function bench_sockets()
    local block = tables.add("sxe-http with many sockets, against limit servers",
                             {"sockets", "workers", "open", "connects/s", "requests/s",
                              "workers' PSS", "bytes a socket"})
    for _, case in ipairs{{10000, 1, 50, "127.0.0.1"}, {100000, 6, 10, "127.0.0.1-127.0.0.8"}} do
        local result = clients.many(wire.program("bench/limit-server"), free_port(), case)
        block.rows[#block.rows + 1] = {
            tables.thousands(case[1]), tostring(case[2]), tables.thousands(result.open),
            tables.thousands(result.connects), tables.thousands(result.rate),
            tables.mebibytes(result.pss), tables.thousands(result.pss / case[1])}
        if result.failed then
            block.notes[#block.notes + 1] = result.failed
        end
    end
    tables.print(block)
    return #block.notes == 0
end

-- The server's memory while 10,000 connections that have each asked something are open and idle:
-- the client is stopped by a signal as soon as all of them are there.
local function bench_memory()
    local connections = 10000
    local row = {connections = connections}
    local block = tables.add(tables.thousands(connections) .. " open connections",
                            {"server", "PSS before", "PSS with all open", "bytes a connection"})
    for _, contender in ipairs(present_servers()) do
        local server = contender.start(row)
        reply_length(server, row)
        wire.sleep(0.1)
        local before, descriptors = wire.pss(server.pid), wire.fds(server.pid)
        local client <close> = wire.spawn(limit_client(server, row, "-d", "30", "-w", "0"))
        local deadline = wire.time() + 30
        while wire.fds(server.pid) < descriptors + connections and wire.time() < deadline do
            wire.sleep(0.05)
        end
        wire.sleep(0.5)
        client:signal("STOP")
        wire.sleep(0.3)
        local open, after = wire.fds(server.pid) - descriptors, wire.pss(server.pid)
        if open < connections then
            block.notes[#block.notes + 1] =
                ("%s: only %d connections open"):format(contender.name, open)
        end
        block.rows[#block.rows + 1] = {
            contender.name, tables.mebibytes(before), tables.mebibytes(after),
            tables.thousands((after - before) / connections)}
        stop(server)
    end
    tables.print(block)
    return #block.notes == 0
end

-- strace's table of one server: counts by name.
local function count_calls(server, row, queries)
    local trace = scratch .. ".strace"
    local strace <close> = wire.spawn{"strace", "-c", "-f", "-o", trace, "-p", tostring(server.pid)}
    for _ = 1, 200 do
        if strace:errors():find("attached") then
            break
        end
        wire.sleep(0.01)
    end
    local client <close> = wire.spawn(limit_client(server, row, "-n", tostring(queries)))
    local result = parse_json(client:line(60))
    client:wait(20)
    strace:signal("INT")
    strace:wait(20)
    local calls = {}
    for line in io.lines(trace) do
        local count, rest = line:match("^%s*[%d.]+%s+[%d.]+%s+%d+%s+(%d+)%s+(.*)$")
        if count and not rest:find("total$") then
            calls[rest:match("(%S+)$")] = tonumber(count)
        end
    end
    os.remove(trace)
    return calls, (result.requests or 0) + 1
end

local function bench_syscalls()
    local block = tables.add("System calls a request, 64 connections", {"server", "calls", "which"})
    if not wire.has("strace") then
        block.notes[1] = "strace is not installed: skipped"
        tables.print(block)
        return true
    end
    local row = {connections = 64}
    for _, contender in ipairs(present_servers()) do
        local server = contender.start(row)
        local calls, requests = count_calls(server, row, 200)
        local names, total, shown = {}, 0, {}
        for name, count in pairs(calls) do
            names[#names + 1], total = name, total + count
        end
        table.sort(names, function(a, b) return calls[a] > calls[b] end)
        for _, name in ipairs(names) do
            if calls[name] / requests >= 0.005 then
                shown[#shown + 1] = ("%s %.2f"):format(name, calls[name] / requests)
            end
        end
        block.rows[#block.rows + 1] = {contender.name, ("%.2f"):format(total / requests),
                                       table.concat(shown, ", ")}
        if total == 0 then
            block.notes[#block.notes + 1] = contender.name .. ": strace counted nothing"
        end
        stop(server)
    end
    tables.print(block)
    return #block.notes == 0
end

local function bench_micro()
    local block = tables.add("Micro benchmarks", {})
    local list = io.popen("ls -d " .. wire.program("test/wire"):gsub("test/wire$", "bench/micro-*")
                          .. " 2>/dev/null")
    local good = true
    for path in list:lines() do
        if not path:find("%.[od]$") then
            local proc <close> = wire.spawn{path, cpu = SERVER_CPU}
            block.notes[#block.notes + 1] = proc:output(120):gsub("%s+$", "")
            good = proc:wait(120) == 0 and good
        end
    end
    list:close()
    if #block.notes == 0 then
        block.notes[1] = "none is built"
    end
    tables.print(block)
    return good
end

local rows = {
    {"64", function() return bench_connections(64) end},
    {"1024", function() return bench_connections(1024) end},
    {"10000", function() return bench_connections(10000) end},
    {"pipeline", bench_pipeline},
    {"files", bench_files},
    {"lua", bench_scripts},
    {"lua-examples", bench_examples},
    {"memory", bench_memory},
    {"client", bench_client},
    {"sockets", bench_sockets},
    {"syscalls", bench_syscalls},
    {"micro", bench_micro},
}

-- ---- The whole ----

local function fingerprint()
    local model, cores = "?", 0
    for line in io.lines("/proc/cpuinfo") do
        model = line:match("^model name%s*: (.*)") or model
        cores = cores + (line:find("^processor") and 1 or 0)
    end
    local parts = {model, cores .. " CPUs", first_line("uname -sr"), first_line("gcc --version"),
                   first_line(wire.program("sxe-httpd") .. " --version")}
    if wire.has("nginx") then
        parts[#parts + 1] = first_line(wire.has("nginx") .. " -v"):gsub("^nginx version: ", "")
    end
    parts[#parts + 1] = os.date("!%Y-%m-%d")
    return table.concat(parts, ", ")
end

local function parse_arguments()
    local known, i = {}, 1
    for _, row in ipairs(rows) do
        known[row[1]] = true
    end
    while arg[i] do
        local word, value = arg[i], arg[i + 1]
        if known[word] then
            options.rows[word] = true
        elseif word == "--smoke" then
            options.smoke, options.rounds, options.seconds = true, 1, 0.2
            options.rows["64"] = true
        elseif word == "--rounds" or word == "--seconds" then
            options[word:sub(3)] = tonumber(value) or fail("%s needs a number", word)
            i = i + 1
        elseif word == "--markdown" then
            options.markdown = value or fail("%s needs a file", word)
            i = i + 1
        else
            fail("no such row or option: %s", word)
        end
        i = i + 1
    end
end

parse_arguments()
scratch = os.tmpname()
root = scratch .. ".files"
os.execute("mkdir " .. root)
local machine, good = fingerprint(), true
print(machine)
for _, row in ipairs(rows) do
    if next(options.rows) == nil or options.rows[row[1]] then
        good = row[2]() and good
    end
end
if options.markdown then
    tables.write_markdown(options.markdown, machine)
end
leave(good)
