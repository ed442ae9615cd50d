-- SPDX-License-Identifier: MIT
--
-- What: our server and our load generator measured beside the physical limit and nginx.
--
--     build/release/test/wire bench/bench.lua [rows] [--rounds 7] [--seconds 1]
--                                             [--markdown FILE] [--smoke]
--     rows: 64 1024 10000 (keep-alive connections) memory client syscalls micro; without any, all
--
-- How: the server has CPU 0, the client CPU 1. Each run is a fresh server process on a fresh port.
-- The servers take turns within a round, and a ratio is that of two runs of the same round, because
-- the speed of a shared machine drifts; medians are taken over the rounds. A round in which other
-- guests of the host took more than 0.08 CPU, or in which anything failed, is repeated, twice at
-- most: after that the row is marked as noisy. Times of the server are its time on a CPU
-- (schedstat) within the measured time, without soft interrupts where the kernel accounts those
-- apart. --smoke is one round of 0.2 s, to see that all this works.

local STEAL_MAX = 0.08
local REPEATS_MAX = 2
local SERVER_CPU, CLIENT_CPU = 0, 1

local options = {rounds = 7, seconds = 1, rows = {}}
local scratch -- the path of nginx's configuration; what begins with it is ours

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

-- median, minimum, maximum
local function spread(values)
    local sorted = table.move(values, 1, #values, 1, {})
    table.sort(sorted)
    local middle = (#sorted + 1) // 2
    local median = #sorted % 2 == 1 and sorted[middle] or (sorted[middle] + sorted[middle + 1]) / 2
    return median, sorted[1], sorted[#sorted]
end

local function thousands(number)
    local digits = ("%.0f"):format(number)
    return (digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

local function mebibytes(bytes)
    return ("%.1f MiB"):format(bytes / 1048576)
end

-- ---- Servers ----

local function free_port()
    local listener <close> = wire.listen("127.0.0.1", 0)
    return listener:port()
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

local function start_nginx(connections)
    local port = free_port()
    -- nginx closes idle connections when fewer than a sixteenth of its places are free.
    local places = connections + connections // 8 + 64
    local fields = {DIRECTORY = scratch .. ".d", PORT = port, CONNECTIONS = places}
    local file = assert(io.open(scratch, "w"))
    file:write((read_file("bench/peers/nginx.conf"):gsub("@(%u+)@", fields)))
    file:close()
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

-- The limit's reply is as long as ours.
local servers = {
    {name = "limit", start = function()
        return start_ours{wire.program("bench/limit-server"), "-p", "0", "-l", "51",
                          cpu = SERVER_CPU}
    end},
    {name = "sxe-httpd", start = function(connections)
        return start_ours{wire.program("sxe-httpd"), "-p", "0", "-c", tostring(connections + 16),
                          cpu = SERVER_CPU}
    end},
    {name = "nginx", start = start_nginx},
}

-- What a server answers, in bytes.
local function reply_length(server)
    local sock <close> = wire.connect("127.0.0.1", server.port)
    sock:send("GET / HTTP/1.1\r\nHost: 127.0.0.1:" .. server.port .. "\r\n\r\n")
    return #sock:read_reply().raw
end

-- ---- One run ----

-- Waits for the client's line of results while looking at the server's clock. Returns that line,
-- and a function that says which share of a CPU the server had in the last seconds before it.
local function watch(client, server)
    local samples = {}
    while not client:ready(0.02) do
        local _, _, busy = wire.cpu(server.pid)
        samples[#samples + 1] = {time = wire.time(), busy = busy}
    end
    local finish = wire.time()
    return client:line(60), function(seconds)
        local first, last
        for _, sample in ipairs(samples) do
            if sample.time >= finish - seconds then
                first, last = first or sample, sample
            end
        end
        return first and last.time > first.time
            and (last.busy - first.busy) / (last.time - first.time) or 0
    end
end

local function parse_json(line)
    local result = {}
    for name, value in (line or ""):gmatch('"([%w_]+)":([%d.]+)') do
        result[name] = tonumber(value)
    end
    return result
end

local function limit_client(server, connections, ...)
    return {wire.program("bench/limit-client"), "-p", tostring(server.port),
            "-c", tostring(connections), cpu = CLIENT_CPU, ...}
end

-- limit-client for a given time.
local function run_limit_client(server, row)
    local client <close> = wire.spawn(limit_client(server, row.connections,
        "-d", tostring(options.seconds), "-w", tostring(options.seconds * 0.3)))
    local line, share = watch(client, server)
    local result = parse_json(line)
    if client:wait(60) ~= 0 or not result.requests or result.requests == 0 then
        return {failed = client:errors() .. (line or "")}
    end
    return {
        rate = result.requests / result.seconds,
        connects = result.connects / result.connect_seconds,
        server_us = share(result.seconds) * result.seconds / result.requests * 1e6,
        client_us = (result.cpu_user + result.cpu_sys) / result.requests * 1e6,
        p50 = result.p50_us, p99 = result.p99_us,
    }
end

-- sxe-http for as many queries as take about the same time.
local function run_sxe_http(server, row)
    local queries = math.max(1, math.ceil(row.last_rate * options.seconds / row.connections))
    local client <close> = wire.spawn{wire.program("sxe-http"), "-p", tostring(server.port), "-c",
                                      tostring(row.connections), "-n", tostring(queries),
                                      cpu = CLIENT_CPU}
    local output = client:output(60)
    local seconds = tonumber(output:match("time for all queries%s*: ([%d.]+)"))
    local connecting = tonumber(output:match("time for all connections: ([%d.]+)"))
    if client:wait(60) ~= 0 or not seconds then
        return {failed = client:errors() .. output}
    end
    return {rate = queries * row.connections / seconds, connects = row.connections / connecting}
end

local function run(contender, row)
    local server = contender.start(row.connections)
    local length = reply_length(server)
    local result = (contender.client or run_limit_client)(server, row)
    result.reply_length = length
    row.last_rate = result.rate or row.last_rate
    server.proc:signal("KILL")
    server.proc:wait(20)
    return result
end

-- ---- Rounds ----

-- One round: every contender once. Nil when the machine or a contender spoiled it, and why.
local function run_round(contenders, row)
    local steal, start, results = wire.steal(), wire.time(), {}
    for _, contender in ipairs(contenders) do
        local result = run(contender, row)
        if result.failed then
            return nil, contender.name .. ": " .. result.failed:gsub("%s+$", "")
        end
        results[contender.name] = result
    end
    local stolen = (wire.steal() - steal) / (wire.time() - start)
    if stolen > STEAL_MAX and not options.smoke then
        return nil, ("%.2f CPU stolen"):format(stolen), results
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
    return (spread(values))
end

-- ---- Tables ----

local report = {} -- in the order of the output: {title, head, rows, notes}

local function add_table(title, head)
    local block = {title = title, head = head, rows = {}, notes = {}}
    report[#report + 1] = block
    return block
end

local function with_range(values)
    local median, low, high = spread(values)
    return ("%s (%s-%s)"):format(thousands(median), thousands(low), thousands(high))
end

local function print_block(block)
    local widths = {}
    for _, row in ipairs{block.head, table.unpack(block.rows)} do
        for i, cell in ipairs(row) do
            widths[i] = math.max(widths[i] or 0, utf8.len(cell))
        end
    end
    print("\n" .. block.title)
    for _, row in ipairs(#block.head > 0 and {block.head, table.unpack(block.rows)} or {}) do
        local cells = {}
        for i, cell in ipairs(row) do
            local fill = (" "):rep(widths[i] - utf8.len(cell))
            cells[i] = i == 1 and cell .. fill or fill .. cell
        end
        print("  " .. table.concat(cells, "  "))
    end
    for _, note in ipairs(block.notes) do
        print("  " .. (note:gsub("\n(.)", "\n  %1")))
    end
end

local function markdown_of(block)
    local lines = {"**" .. block.title .. "**", ""}
    local function add(cells)
        lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
    end
    if #block.head > 0 then
        add(block.head)
        lines[#lines + 1] = "|---" .. ("|--:"):rep(#block.head - 1) .. "|"
        for _, row in ipairs(block.rows) do
            add(row)
        end
        lines[#lines + 1] = ""
    end
    for _, note in ipairs(block.notes) do
        lines[#lines + 1] = note .. "\n"
    end
    return table.concat(lines, "\n")
end

local function add_row_notes(block, row)
    if row.failed then
        block.notes[#block.notes + 1] = "FAILED: " .. row.failed
    elseif row.noisy then
        block.notes[#block.notes + 1] = "noisy: " .. row.noisy
    end
    print_block(block)
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

local function bench_connections(connections)
    local row = {connections = connections}
    local contenders = present_servers()
    local rounds = run_rounds(contenders, row)
    local block = add_table(
        ("%s keep-alive connections, one CPU (median of %d rounds of %g s)")
            :format(thousands(connections), options.rounds, options.seconds),
        {"server", "requests/s (min-max)", "÷ limit", "connects/s (min-max)", "÷ limit",
         "server µs/request", "p50 µs", "p99 µs", "reply bytes"})
    for _, server in ipairs(#rounds > 0 and contenders or {}) do
        local name = server.name
        local function values(field)
            return column(rounds, name, field)
        end
        block.rows[#block.rows + 1] = {
            name, with_range(values("rate")), ("%.2f"):format(ratio(rounds, name, "limit", "rate")),
            with_range(values("connects")),
            ("%.2f"):format(ratio(rounds, name, "limit", "connects")),
            ("%.2f"):format((spread(values("server_us")))), thousands((spread(values("p50")))),
            thousands((spread(values("p99")))), tostring(values("reply_length")[1])}
    end
    add_row_notes(block, row)
    return row.failed == nil
end

-- Our load generator in limit-client's place.
local function bench_client()
    local row = {connections = 64, last_rate = 50000}
    local limit = servers[1].start
    local contenders = {{name = "limit-client", start = limit, client = run_limit_client},
                        {name = "sxe-http", start = limit, client = run_sxe_http}}
    local rounds = run_rounds(contenders, row)
    local block = add_table("Load generators, 64 connections, against the limit server, one CPU",
                            {"client", "requests/s (min-max)", "÷ limit", "connects/s (min-max)"})
    for _, client in ipairs(#rounds > 0 and contenders or {}) do
        block.rows[#block.rows + 1] = {
            client.name, with_range(column(rounds, client.name, "rate")),
            ("%.2f"):format(ratio(rounds, client.name, "limit-client", "rate")),
            with_range(column(rounds, client.name, "connects"))}
    end
    add_row_notes(block, row)
    return row.failed == nil
end

-- The server's memory while 10,000 connections that have each asked something are open and idle:
-- the client is stopped by a signal as soon as all of them are there.
local function bench_memory()
    local connections = 10000
    local block = add_table(thousands(connections) .. " open connections",
                            {"server", "PSS before", "PSS with all open", "bytes a connection"})
    for _, contender in ipairs(present_servers()) do
        local server = contender.start(connections)
        reply_length(server)
        wire.sleep(0.1)
        local before, descriptors = wire.pss(server.pid), wire.fds(server.pid)
        local client <close> = wire.spawn(limit_client(server, connections, "-d", "30", "-w", "0"))
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
        block.rows[#block.rows + 1] = {contender.name, mebibytes(before), mebibytes(after),
                                       thousands((after - before) / connections)}
        server.proc:signal("KILL")
        server.proc:wait(20)
    end
    print_block(block)
    return #block.notes == 0
end

-- strace's table of one server: counts by name.
local function count_calls(server, connections, queries)
    local trace = scratch .. ".strace"
    local strace <close> = wire.spawn{"strace", "-c", "-f", "-o", trace, "-p", tostring(server.pid)}
    for _ = 1, 200 do
        if strace:errors():find("attached") then
            break
        end
        wire.sleep(0.01)
    end
    local client <close> = wire.spawn(limit_client(server, connections, "-n", tostring(queries)))
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
    local block = add_table("System calls a request, 64 connections", {"server", "calls", "which"})
    if not wire.has("strace") then
        block.notes[1] = "strace is not installed: skipped"
        print_block(block)
        return true
    end
    for _, contender in ipairs(present_servers()) do
        local server = contender.start(64)
        local calls, requests = count_calls(server, 64, 200)
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
        server.proc:signal("KILL")
        server.proc:wait(20)
    end
    print_block(block)
    return #block.notes == 0
end

local function bench_micro()
    local block = add_table("Micro benchmarks", {})
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
    print_block(block)
    return good
end

local rows = {
    {"64", function() return bench_connections(64) end},
    {"1024", function() return bench_connections(1024) end},
    {"10000", function() return bench_connections(10000) end},
    {"memory", bench_memory},
    {"client", bench_client},
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

-- Between the marks "<!-- bench" and "<!-- /bench -->" where the file has them, else as the file.
local function write_markdown(path, blocks, machine)
    local parts = {}
    for _, block in ipairs(blocks) do
        parts[#parts + 1] = markdown_of(block) .. "\n"
    end
    parts[#parts + 1] = "Measured by `bench/bench.lua` on " .. machine .. ".\n"
    local text = table.concat(parts)
    local old = io.open(path)
    local before, after
    if old then
        before, after = old:read("a"):match("^(.*<!%-%- bench[^\n]*\n).*(<!%-%- /bench %-%->.*)$")
        old:close()
    end
    local file = assert(io.open(path, "w"))
    file:write(before or "", text, after or "")
    file:close()
end

parse_arguments()
scratch = os.tmpname()
local machine, good = fingerprint(), true
print(machine)
for _, row in ipairs(rows) do
    if next(options.rows) == nil or options.rows[row[1]] then
        good = row[2]() and good
    end
end
if options.markdown then
    write_markdown(options.markdown, report, machine)
end
leave(good)
