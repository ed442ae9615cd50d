-- SPDX-License-Identifier: MIT
-- How the benchmarks evaluate samples: rounds, what makes a sample void, medians, ratios, targets; then the tables, the
-- result file and the flame graph. These tests measure nothing: each row brings its samples along. Also tested: the
-- texts that the benchmark's driver exchanges with helper programs.

package.path = "bench/lib/?.lua;" .. package.path

local cjson = require "cjson"
local clients = require "clients"
local flame = require "flame"
local json = require "json"
local load = require "load"
local machine = require "machine"
local method = require "method"
local others = require "others"
local peers = require "peers"
local programs = require "programs"
local report = require "report"
local result = require "result"
local rows = require "rows"
local tables = require "tables"

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))

local function house(rounds)
    return {options = {rounds = rounds}, smoke = false, scratch = directory, root = directory,
            files = directory .. "/", server_cpu = 0, client_cpu = 0}
end

-- A row of the benchmark. Each peer returns its `samples` one after the other, then the last one again and again.
local function row_of(samples, more)
    local row, at = {name = "r", title = "A row", unit = "replies/s", reference = "limit",
                     ours = "us"}, {}
    row.run = function(_, peer)
        local list = samples[peer.name]
        at[peer.name] = math.min((at[peer.name] or 0) + 1, #list)
        local sample = list[at[peer.name]]
        if type(sample) == "string" then
            error(sample, 0)
        end
        return type(sample) == "table" and sample or {value = sample}
    end
    for name, value in pairs(more or {}) do
        row[name] = value
    end
    return row
end

local function peers_of(...)
    local list = {}
    for i, name in ipairs{...} do
        list[i] = {name = name, title = name:upper()}
    end
    return list
end

-- Measure a row in `rounds` rounds, without the messages about void samples.
local function measure(row, rounds, ...)
    local stderr = io.stderr
    io.stderr = {write = function() end}
    local state = method.run(house(rounds), row, peers_of(...))
    io.stderr = stderr
    return result.summarize(row, state, 1, {})
end

test("values are medians with their range, and ratios are taken within a round", function()
    local got = measure(row_of{limit = {100, 200, 400}, us = {90, 190, 300}}, 3, "limit", "us")
    local us = got.peers[2]
    equal(us.median, 190)
    equal(us.min, 90)
    equal(us.max, 300)
    equal(us.ratio, 0.9) -- the median of 0.9, 0.95 and 0.75; the ratio of the medians would be 0.95
    equal(us.ratio_min, 0.75)
    equal(us.ratio_max, 0.95)
    equal(got.rounds, 3)
    equal(got.is_void, false)
end)

test("a sample that other processes disturbed is taken again, the others are not", function()
    local disturbed = {value = 1, lost = 0.5, lost_to = "make 0.50"}
    local got = measure(row_of{limit = {100, 200}, us = {disturbed, 90, 190}}, 2, "limit", "us")
    equal(got.is_void, false)
    equal(#got.void_samples, 1)
    equal(got.void_samples[1].peer, "us")
    equal(got.void_samples[1].why, "0.50 CPU taken by others (make 0.50)")
    equal(table.concat(got.peers[1].values, " "), "100 200")
    equal(table.concat(got.peers[2].values, " "), "90 190")
end)

test("a process that runs in all samples alike disturbs none; more of it does, and steal does", function()
    local steady = {value = 1, lost = 0.14}
    local got = measure(row_of{limit = {steady}, us = {steady}}, 2, "limit", "us")
    equal(got.is_void, false)
    local more = {value = 7, lost = 0.17, lost_to = "make 0.17"}
    got = measure(row_of{limit = {steady}, us = {more}}, 2, "limit", "us")
    equal(got.why_void, "0.17 CPU taken by others (make 0.17)")
    local stolen = {value = 7, lost = 0.14, stolen = 0.1}
    got = measure(row_of{limit = {steady}, us = {stolen}}, 2, "limit", "us")
    equal(got.why_void, "0.14 CPU taken by others")
    got = measure(row_of{limit = {{value = 1, lost = 0.04}}, us = {steady}}, 2, "limit", "us")
    equal(got.is_void, true)
end)

test("a round that counted as good only beside a noisier one is measured again", function()
    local loud, quiet = {value = 1, lost = 0.15}, {value = 100, lost = 0.01}
    local got = measure(row_of{limit = {loud, quiet}, us = {loud, quiet}}, 2, "limit", "us")
    equal(got.is_void, false)
    equal(got.rounds, 2)
    equal(#got.void_samples, 2)
    equal(table.concat(got.peers[1].values, " "), "100 100")
end)

test("a row is void if too many of its samples are disturbed", function()
    local loud, quiet = {value = 1, lost = 0.15}, {value = 100, lost = 0.01}
    local got = measure(row_of{limit = {loud}, us = {loud}, other = {loud}, more = {loud},
                               last = {quiet}}, 1, "limit", "us", "other", "more", "last")
    equal(got.why_void, "0.15 CPU taken by others")
    equal(got.rounds, 1)
    equal(#got.void_samples, 4)
end)

test("a row that stays disturbed is void, says why, and shows what it has", function()
    local got = measure(row_of{limit = {100}, us = {{value = 7, lost = 0.2}}}, 2, "limit", "us")
    equal(got.is_void, true)
    equal(got.why_void, "0.20 CPU taken by others")
    equal(#got.void_samples, 6)
    equal(got.peers[2].median, 7)
end)

test("a peer that fails is left out; the row is void only if our server or the reference failed", function()
    local samples = {limit = {100}, us = {90}, other = {"it did not start"}}
    local got = measure(row_of(samples), 2, "limit", "us", "other")
    equal(#got.peers, 2)
    equal(got.is_void, false)
    equal(got.has_failed, true)
    equal(got.skipped[1].why, "failed: other: it did not start")
    samples.us = {{errors = "a reset"}}
    equal(measure(row_of(samples), 2, "limit", "us").why_void, "us: a reset")
end)

test("an error of a later round voids the row", function()
    local got = measure(row_of{limit = {100}, us = {90, "gone"}}, 2, "limit", "us")
    equal(got.is_void, true)
    equal(got.why_void, "us: gone")
    equal(got.rounds, 1)
end)

-- A table of processes: 1 (init) inherits orphans; the shell 10 started the driver 20, whose server 21 has the worker
-- 22; the make 30 runs the compiler 31. times[pid] = {own CPU time, that of ended children}; false: no such process.
local function processes(times)
    local list = {}
    for pid, line in pairs{[1] = {"init", 0}, [9] = {"ksoftirqd/0", 0}, [10] = {"sh", 1},
                           [20] = {"wire", 10}, [21] = {"server", 20}, [22] = {"server", 21},
                           [30] = {"make", 1}, [31] = {"cc1", 30}} do
        local own, ended = table.unpack(times[pid] or {0, 0})
        list[pid] = times[pid] ~= false and {name = line[1], parent = line[2], own = own,
                                             ended = ended} or nil
    end
    return list
end

test("CPU time of others leaves out the driver, its descendants, and the kernel's threads for packets", function()
    local last = {[9] = {5, 0}, [20] = {1, 7}, [21] = {2, 0}, [22] = {3, 0}}
    equal(others.between(processes{}, processes(last), 20), 0)
    last[10] = {0.25, 0}
    local sum, ran = others.between(processes{}, processes(last), 20)
    equal(sum, 0.25)
    equal(ran.sh, 0.25)
end)

test("the kernel's threads that write to the disk count only in rows that do not write", function()
    local function list(name, seconds, parent)
        local all = processes{}
        all[50] = {name = name, parent = parent or 2, own = seconds, ended = 0}
        return all
    end
    local names = {"kworker/1:2H-kblockd", "kworker/1:2H", "kworker/u8:1-writeback", "jbd2/sda1-8"}
    for _, name in ipairs(names) do
        equal(others.between(list(name, 3), list(name, 5), 20), 2)
        equal(others.between(list(name, 3), list(name, 5), 20, true), 0)
        equal(others.between(list(name, 3), list("kworker/u8:1-events", 5), 20, true), 0)
        equal(others.between(list(name, 3, 10), list(name, 5, 10), 20, true), 2) -- a program of this name
    end
    equal(others.between(list("kworker/1:0-events", 3), list("kworker/1:0-events", 5), 20, true), 2)
end)

test("an ended process counts by the time that its parent inherits, less its time before the sample", function()
    local sum, ran = others.between(processes{[31] = {40, 0}},
                                    processes{[31] = false, [30] = {1, 43}}, 20)
    equal(sum, 4)
    equal(ran["below make"], 3)
    sum = others.between(processes{[30] = {2, 3}, [31] = {40, 0}},
                         processes{[30] = false, [31] = false, [1] = {0, 50}}, 20)
    equal(sum, 0) -- not counted: an ancestor of the driver inherits its servers' time, too
    equal(others.between(processes{}, processes{[1] = {0.5, 50}}, 20), 0.5)
end)

-- Start a busy loop whose parent ends at once, so that it is no descendant of this driver; it ends by itself after 20
-- s.
local function start_loop(cpu)
    assert(os.execute(("ln -sf /bin/sh %s/loop && { taskset -c %d timeout 20 %s/loop -c "
                       .. "'echo $$; while :; do :; done' >%s/pid & }"):format(
                       directory, cpu, directory, directory)))
end

test("a loop on either CPU is found, by its name", function()
    for cpu = 0, math.min(machine.fingerprint().cpus, 2) - 1 do
        local first, start = machine.processes(), wire.time()
        start_loop(cpu)
        local sum, ran
        repeat
            wire.sleep(0.05)
            sum, ran = others.between(first, machine.processes(), machine.self())
        until (ran.loop or 0) > 0.1 or wire.time() - start > 15
        os.execute(("kill $(cat %s/pid)"):format(directory))
        check((ran.loop or 0) > 0.1, "it is not found")
        check(sum >= ran.loop, "it does not count")
    end
end)

test("targets are ratios to a peer, or values, and more or less is better", function()
    local more = {target = {{peer = "limit", ratio = 0.9, of = "issue 3"}, {value = 91}}}
    local got = measure(row_of({limit = {100}, us = {90}}, more), 1, "limit", "us")
    equal(got.targets[1].is_met, true)
    equal(got.targets[1].got, 0.9)
    equal(got.targets[2].is_met, false)
    more = {better = "less", target = {peer = "limit", ratio = 3}}
    got = measure(row_of({limit = {100}, us = {301}}, more), 1, "limit", "us")
    equal(got.targets[1].is_met, false)
    equal(report.target(got, got.targets[1]),
          "target (ours): at most 3.00 of LIMIT: 3.01, MISSED by 0.010")
    got = measure(row_of({limit = {100}}, more), 1, "limit")
    equal(got.targets[1].is_met, nil)
end)

test("a process that uses a whole CPU is the bottleneck", function()
    local samples = {limit = {{value = 1, cpu_server = 0.95, cpu_client = 0.5}},
                     us = {{value = 1, cpu_server = 0.5, cpu_client = 0.97}}}
    local got = measure(row_of(samples), 1, "limit", "us")
    equal(got.peers[1].bottleneck, "server")
    equal(got.peers[2].bottleneck, "client")
    local two = {context = {cpu = {0, 1}}}
    samples = {limit = {{value = 1, cpu_server = 1.9, cpu_client = 0.1}}}
    got = measure(row_of(samples, two), 1, "limit")
    equal(got.peers[1].bottleneck, "server")
    samples = {limit = {{value = 1, cpu_server = 1.1, cpu_client = 0.8}},
               us = {{value = 1, cpu_server = 1.1, cpu_client = 0.6}}}
    got = measure(row_of(samples, two), 1, "limit", "us")
    equal(got.peers[1].bottleneck, "server") -- the client runs on the server's CPUs
    equal(got.peers[2].bottleneck, "neither")
    two.client_cpus = 2
    samples = {limit = {{value = 1, cpu_server = 0.5, cpu_client = 1.1}}}
    equal(measure(row_of(samples, two), 1, "limit").peers[1].bottleneck, "neither")
end)

test("points of several rounds become one line of medians", function()
    local function points(a, b)
        return {points = {{x = 10, value = a, memory = 5}, {x = 20, value = b, memory = 6}}}
    end
    local row = row_of{us = {points(1, 4), points(3, 6), points(2, 5)}}
    local line = measure(row, 3, "us").peers[1].points
    equal(#line, 2)
    equal(line[1].value, 2)
    equal(line[2].max, 6)
    equal(line[2].memory, 6)
end)

test("a row is planned to be done within its budget", function()
    local row = {budget = 70, rounds = 7}
    local function some(number, warm_up)
        local list = {}
        for i = 1, number do
            list[i] = {warm_up = i == 1 and warm_up or nil}
        end
        return list
    end
    local function seconds(peers, options)
        return ("%.6f"):format(method.seconds_of(row, peers, options or {}))
    end
    equal(seconds(some(5)), ("%.6f"):format((70 / 35 - 0.15) / 1.3))
    equal(seconds(some(5, 1.5)), ("%.6f"):format((70 / 35 - 0.15 - 1.5 / 35) / 1.3))
    equal(seconds(some(500)), "0.300000")
    equal(seconds(some(5), {seconds = 4}), "4.000000")
    equal(("%.3f"):format(method.planned(row, some(5, 1.5), {})), "70.000")
    row.load = {connections = 64} -- with this load, a second client measures the row, too, if it is installed
    local planned = method.planned(row, some(5, 1.5), {})
    check(planned > 60 and planned <= 70, planned)
    equal(method.rounds_of({rounds = 1}, {rounds = 9}), 1)
end)

-- Start a server that does nothing; append its pid to `started`.
local function start_nothing(started)
    return function(context)
        local proc = context.spawn{"sleep", "60"}
        started[#started + 1] = proc:pid()
        return context.server(proc)
    end
end

-- Measure three rounds of two peers: one is started again for each round, the other takes long to warm up and uses the
-- given samples. Returns the pids of the processes that were started for each peer.
local function run_warm(samples)
    local fresh, warm, run, number = {}, {}, load.run, 0
    load.run = function(_, server)
        if server.warm_up then
            number = number + 1
        end
        return server.warm_up and samples[number] or {value = 1}
    end
    local row = {name = "r", reference = "fresh", ours = "fresh",
                 load = {connections = 1, second = false}}
    local stderr = io.stderr
    io.stderr = {write = function() end}
    method.run(house(3), row, {{name = "fresh", start = start_nothing(fresh)},
                               {name = "warm", start = start_nothing(warm), warm_up = 0.1}})
    io.stderr, load.run = stderr, run
    return fresh, warm
end

test("a server that takes long to warm up runs through all rounds; others are started for each", function()
    local fresh, warm = run_warm{}
    equal(#fresh, 3)
    equal(#warm, 1)
    check(not os.execute(("kill -s 0 %d 2>/dev/null"):format(warm[1])), "it stays for ever")
end)

test("a server that failed is started again", function()
    local _, warm = run_warm{{value = 1}, {errors = "a reset"}, {value = 1}}
    equal(#warm, 2)
    check(not os.execute(("kill -s 0 %d 2>/dev/null"):format(warm[1])), "it stays")
end)

test("a program that reads commands runs through a row; one that ended is started again", function()
    local bench = method.bench(setmetatable({kept = {}}, {__index = house(1)}), {})
    local words = {"sh", "-c", "echo ready; read -r word; echo $$ $word; read -r word"}
    local pid, word = programs.start(bench, words)("one"):match("^(%d+) (%a+)$")
    equal(word, "one")
    local good, why = pcall(programs.start(bench, words), "two")
    equal(good, false)
    equal(why, "sh ended: ")
    local other = programs.start(bench, words)("three"):match("^(%d+) three$")
    check(other and other ~= pid, "no other program")
    do
        local _ <close> = bench.kept.sh
    end
    check(not os.execute(("kill -s 0 %d 2>/dev/null"):format(other)), "it stays for ever")
end)

test("peers that share a run of a program share the CPU time that others took", function()
    local bench, watch = method.bench(house(1), {}), others.watch
    local words, times = {"echo", "a value"}, 0
    others.watch = function()
        times = times + 1
        return function() return 0.5, "make 0.50", 0.1 end
    end
    for _, who in ipairs{"one", "other"} do
        local output, ran = programs.output(bench, words, who)
        equal(output, "a value\n")
        equal(("%g %s %g"):format(ran.lost, ran.lost_to, ran.stolen), "0.5 make 0.50 0.1")
    end
    equal(times, 1)
    others.watch = watch
end)

test("replies of random bytes are checked by their length", function()
    local words = clients.find("sxe-http").command({connections = 1, body_length = 108000},
                                                   {port = 80}, 1, directory .. "/")
    check(table.concat(words, " "):find("--expect-header Content-Length: 108000", 1, true), "no")
end)

test("a result file can be read back, and its names are sorted", function()
    local got = result.new({text = "a \"machine\"\n"}, {})
    got.rows[1] = measure(row_of{limit = {100}, us = {0.1234567891}}, 1, "limit", "us")
    local path = directory .. "/result.json"
    result.save(got, path)
    local again = result.load(path)
    equal(again.machine.text, "a \"machine\"\n")
    equal(again.rows[1].peers[2].median, 0.1234568)
    equal(again.rows[1].is_void, false)
    equal(json.encode{b = {1, 2, "x"}, a = {}}, '{\n  "a": [],\n  "b": [1, 2, "x"]\n}\n')
    equal(cjson.decode(json.encode{"\1\"\\\t"})[1], "\1\"\\\t")
    result.save(again, path .. "2")
    equal(json.encode(result.load(path .. "2")), json.encode(again))
end)

test("a failed write leaves the old file, and no temporary file", function()
    local path = directory .. "/whole"
    result.write_file(path, "before")
    assert(os.execute(("ln -s /dev/full %s.part"):format(path)))
    local good, why = pcall(result.write_file, path, "after")
    equal(good, false)
    equal(why, path .. " cannot be written: No space left on device")
    equal(assert(io.open(path)):read("a"), "before")
    check(not os.execute(("test -e %s.part -o -L %s.part"):format(path, path)), "a part is left")
    good, why = pcall(result.write_file, directory .. "/none/file", "text")
    equal(good, false)
    check(why:find("none/file cannot be written: ", 1, true), why)
end)

test("an incomplete result lists what is missing, and new rows are inserted in order", function()
    local order = {{name = "a"}, {name = "b"}, {name = "c"}}
    local got = result.new({text = "a machine"}, {}, order)
    result.put(got, {name = "c", took_s = 1}, order)
    result.put(got, {name = "a", took_s = 2}, order)
    result.put(got, {name = "c", took_s = 4}, order)
    equal(#got.rows, 2)
    equal(got.rows[1].name, "a")
    equal(got.took_s, 6)
    equal(table.concat(got.missing, " "), "b")
    check(result.lacking(got).b and not result.lacking(got).a, "what is lacking")
end)

test("the void ones of the requested rows are listed", function()
    local order = {{name = "a"}, {name = "b"}, {name = "c"}}
    local got = result.new({text = "a machine"}, {}, order)
    result.put(got, {name = "c", is_void = true}, order)
    result.put(got, {name = "b", is_void = false}, order)
    equal(#result.void_of(got, {order[1], order[2]}), 0)
    local void = result.void_of(got, order)
    equal(#void, 1)
    equal(void[1].name, "c")
end)

test("a result of version 1 can be read", function()
    local path = directory .. "/old.json"
    result.write_file(path, '{"date": "2026-01-02T03:04:05Z", "rows": [{"void_rounds": [1]}]}')
    local old = result.load(path)
    equal(#old.missing, 0)
    equal(#old.rows[1].void_samples, 1)
    equal(old.rows[1].date, old.date)
end)

test("the table replaces the text between the marks, one line for each row", function()
    local path = directory .. "/page.md"
    local file = assert(io.open(path, "w"))
    file:write("before\n<!-- bench: by make -->\nold\n<!-- /bench -->\nafter\n")
    file:close()
    local got = result.new({text = "a machine"}, {})
    got.rows[1] = measure(row_of{limit = {2000, 2200}, us = {1900, 2000}, other = {10, 11}}, 2,
                          "limit", "us", "other")
    report.write_markdown(got, path)
    local text = assert(io.open(path)):read("a")
    check(text:find("^before\n<!%-%- bench: by make %-%->\n| row |"), text)
    check(text:find("<!%-%- /bench %-%->\nafter\n$"), text)
    check(not text:find("old"), text)
    local line = "| r | A row | replies/s | US: 1,950 (1,900-2,000) | 0.93 of LIMIT's 2,100 | "
                 .. "OTHER 10.5 (0.01) |"
    check(text:find(line, 1, true), text)
    check(text:find("a machine", 1, true), text)
    got.rows[1].date, got.rows[2] = "2026-01-02T", got.rows[1]
    got.rows[1] = setmetatable({date = "2026-01-03T"}, {__index = got.rows[2]})
    check(report.markdown(got):find("Measured on 2026-01-02 to 2026-01-03: a machine", 1, true),
          "the days")
end)

test("a ratio is marked if the printed medians do not give it", function()
    local got = result.new({text = "a machine"}, {})
    got.rows[1] = measure(row_of{limit = {100, 200, 400}, us = {90, 190, 300}}, 3, "limit", "us")
    check(report.markdown(got):find("| 0.90~ of LIMIT's 200 |", 1, true), report.markdown(got))
end)

test("a mark with rows gets a short table of these rows, without ratios", function()
    local path = directory .. "/short.md"
    result.write_file(path, 'x\n<!-- bench rows="r": by make -->\nold\n<!-- /bench -->\ny\n')
    local got = result.new({text = "a machine"}, {})
    got.rows[1] = measure(row_of{limit = {2000, 2200}, us = {1900, 2000}, go = {10, 11}}, 2,
                          "limit", "us", "go")
    got.rows[2] = setmetatable({name = "other"}, {__index = got.rows[1]})
    report.write_markdown(got, path)
    local text = assert(io.open(path)):read("a")
    check(text:find("| A row | replies/s | 1,950 | 2,100 | - | 10.5 | - |\n\nMeasured on", 1, true),
          text)
    check(text:find("<!%-%- /bench %-%->\ny\n$"), text)
end)

test("rows of 2010: memory is that of the whole process, sockets are those of sxe-http", function()
    local path = directory .. "/old-rows.json"
    result.write_file(path, [[{"date": "2026-01-02", "rows": [
        {"name": "memory", "unit": "bytes/connection", "reference": "nginx", "ours": "sxe-httpd",
         "void_samples": [], "peers": [
            {"name": "limit", "title": "limit program", "median": -6, "more": {"after": 0.5}},
            {"name": "sxe-httpd", "title": "sxe-httpd", "median": 185, "more": {"after": 4}},
            {"name": "nginx", "title": "nginx", "median": 520, "more": {"after": 16}},
            {"name": "gone", "title": "gone"}]},
        {"name": "sockets-1", "title": "many", "unit": "bytes", "reference": "limit", "ours": "limit",
         "void_samples": [], "peers": [
            {"name": "limit", "title": "limit program", "median": 500, "min": 500, "max": 500}]}],
        "machine": {"text": "a machine"}}]])
    local text = report.markdown(result.load(path))
    check(text:find("| MiB | 4.0 | 0.25 of nginx's 16.0 | limit program 0.5 (0.03) |", 1, true), text)
    check(text:find("| bytes | sxe-http: 500 |  |  |", 1, true), text)
    check(not text:find("-6", 1, true), text)
end)

test("numbers are printed in short form", function()
    equal(tables.number(1234567.8), "1,234,568")
    equal(tables.number(99.94), "99.9")
    equal(tables.number(0.5), "0.500")
    equal(tables.number(-1234.5, 1), "-1,234.5")
    equal(tables.number(0), "0")
    equal(tables.number(12.3456, 2.0), "12.35")
end)

test("a row with fewer than seven rounds is labelled", function()
    local row = row_of{us = {1}}
    equal(report.sentences(measure(row, 2, "us"))[1], "of 2 rounds")
    equal(#report.sentences(measure(row, 7, "us")), 0)
    row.is_exact = true
    equal(#report.sentences(measure(row, 1, "us")), 0)
end)

test("candles of several rounds are merged", function()
    local function round(min, mean, max)
        return {candles = {{servers = 1, clients = 2, kind = "read", min = min, mean = mean,
                            max = max, count = 10}}}
    end
    local rounds = {round(2, 10, 30), round(1, 30, 40), round(3, 20, 99)}
    local got = measure(row_of{us = rounds}, 3, "us")
    local candle = got.peers[1].candles[1]
    equal(#got.peers[1].candles, 1)
    equal(("%g %g %.1f %g"):format(candle.min, candle.mean, candle.p, candle.max), "1 20 20.2 99")
    equal(candle.rounds, 3)
    equal(candle.count, 30)
end)

test("every package that is said to be missing is one that make bench-deps installs", function()
    local known = assert(io.open("tools/bench-deps.sh")):read("a")
    local number = 0
    for _, row in ipairs(rows.list) do
        local all = {row.needs and row or nil}
        for _, peer in ipairs(row.peers) do
            all[#all + 1] = type(peer) == "table" and peer or peers.find(peer)
        end
        for _, one in ipairs(all) do
            local name = one.package or one.needs and one.needs[1]
            check(not name or known:find("need " .. name .. " ", 1, true),
                  ("%s of %s"):format(name, row.name))
            number = number + (name and 1 or 0)
        end
    end
    check(number > 50, number)
end)

test("every row has a title, a check and the reasons that make it void", function()
    for _, row in ipairs(rows.list) do
        for _, field in ipairs{"title", "work", "command", "checks", "void", "unit", "reference"} do
            check(row[field] and row[field]:find("%w"), ("%s: no %s"):format(row.name, field))
        end
        check(#row.peers > 0, row.name .. ": nobody")
    end
end)

test("candles become lines of CSV", function()
    local candle = {servers = 2, clients = 3, kind = "read", min = 1, mean = 10, p = 10.1, max = 99}
    local got = measure(row_of{us = {{candles = {candle}}}}, 1, "us")
    equal(report.csv(got), "peer,servers,clients,kind,min_us,mean_us,mean_101_us,max_us\n"
          .. "us,2,3,read,1.0,10.0,10.1,99.0\n")
    equal(report.csv(measure(row_of{us = {1}}, 1, "us")), nil)
end)

test("the client that holds many connections counts again under the same load, as often as told", function()
    local server <close> = wire.spawn{wire.program("bench/limit-server"), "-p", "0"}
    local port = server:line(20):match(":(%d+)$")
    local client <close> = wire.spawn{wire.program("bench/crowd-client"), "-p", port, "-s", "4,8",
                                      "-t", 2, "-d", 0.05, "-q", 0, "-a"}
    local function says(what)
        local line = client:line(20)
        check(line and line:find(what, 1, true), line or client:errors())
        return line
    end
    for _, step in ipairs{{connections = 4, again = 2}, {connections = 8, again = 0}} do
        for i = 0, step.again do
            says(('"connections":%d,"begins":true'):format(step.connections))
            says(('"connections":%d,"counted":true'):format(step.connections))
            client:signal(i < step.again and "USR1" or "USR2")
        end
        local got = cjson.decode(says('"connect_seconds"'))
        equal(got.connections, step.connections)
        equal(got.seconds, 0.05)
        equal(got.errors, 0)
        check(got.requests > 0, "no request was counted")
    end
    equal(client:wait(20), 0)
end)

-- Stacks in the format of perf script, the innermost frame first.
local STACKS = [[
sxe-httpd
        55d0 parse<head>+0x1f (/home/x/build/release/sxe-httpd)
        55aa main (/home/x/build/release/sxe-httpd)

sxe-httpd
    ffffffff8100 tcp_sendmsg ([kernel.kallsyms])
        7f00 write (/usr/lib/x86_64-linux-gnu/libc.so.6)
        55aa main (/home/x/build/release/sxe-httpd)

sxe-httpd
    ffffffff8100 tcp_sendmsg ([kernel.kallsyms])
        7f00 write (/usr/lib/x86_64-linux-gnu/libc.so.6)
        55aa main (/home/x/build/release/sxe-httpd)
]]

test("a flame graph counts stacks, and names the owner of the time", function()
    local root = flame.parse(STACKS:gmatch("([^\n]*)\n"))
    equal(root.count, 3)
    equal(root.children.main.children.write.count, 2)
    local kinds, leaves = flame.leaves(root, 5)
    equal(("%.2f %.2f"):format(kinds.kernel, kinds.ours), "0.67 0.33")
    equal(leaves[1].name, "tcp_sendmsg")
    local svg = flame.svg(root, "a & b", "c")
    check(svg:find("<title>parse&lt;head&gt;, 33.33 %</title>", 1, true), svg)
    check(svg:find(">a &amp; b</text>", 1, true), svg)
    check(svg:find('class="kernel"', 1, true), svg)
end)

os.execute("rm -rf " .. directory)
