-- SPDX-License-Identifier: MIT
--
-- sxe-http-mpi with four ranks: their load, checked by the server's log, and what happens when a rank dies or stops.

local function can_open(path)
    local file = io.open(path)
    return file and file:close()
end

if not can_open(wire.program("sxe-http-mpi")) then
    print("skipped: sxe-http-mpi with four ranks, because Open MPI (libopenmpi-dev) is not installed")
    return
end
if not wire.has("mpirun") then
    print("skipped: sxe-http-mpi with four ranks, because mpirun (openmpi-bin) is not installed")
    return
end

local RANKS = 4
-- Allow more ranks than cores; use no network but loopback. (LeakSanitizer is off below: Open MPI itself leaks.)
local mpirun = {"mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader",
                "--mca", "plm", "isolated", "-np", tostring(RANKS)}
local env = {ASAN_OPTIONS = "detect_leaks=0", UCX_LOG_LEVEL = "error"}

-- A new directory, removed by <close>, with a server that writes its access log there.
local function place()
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute("mkdir " .. path))
    local port = wire.free_port()
    local server = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port), "--access-log",
                              path .. "/log"}
    server:line(120)
    return setmetatable({path = path, port = port, server = server,
                         url = ("http://127.0.0.1:%d/{SEQ:5}"):format(port)},
                        {__close = function(self)
        self.server:signal("KILL")
        os.execute("rm -rf " .. self.path)
    end})
end

local function read(path)
    local file <close> = io.open(path)
    return file and file:read("a") or ""
end

-- Start a job whose ranks write their pids to the files rank.0, rank.1 ... of the directory.
local function start(at, ...)
    local words = {table.unpack(mpirun)}
    for _, word in ipairs{"sh", "-c", 'echo $$ >"$0/rank.$OMPI_COMM_WORLD_RANK"; exec "$@"',
                          at.path, wire.program("sxe-http-mpi"), "-q", "--timeout", "120", "--json",
                          at.path .. "/json", ...} do
        words[#words + 1] = word
    end
    words.env = {TMPDIR = at.path} -- a job that ends removes TMPDIR, which jobs would share otherwise
    for name, value in pairs(env) do
        words.env[name] = value
    end
    return wire.spawn(words)
end

-- Wait for the end of a job. On a machine that is busy with other tests, a good result may be suspect.
local function finish(at, proc)
    local output = proc:output(240)
    local ran = {status = proc:wait(120), output = output, errors = proc:errors()}
    local until_s = wire.time() + 60
    repeat -- a process of rank 0 writes the file, perhaps after mpirun has ended
        ran.json = read(at.path .. "/json")
        local is_whole = ran.json:find "\n}\n$"
        if not is_whole then
            wire.sleep(0.05)
        end
    until is_whole or wire.time() > until_s
    check(not ran.errors:find("Sanitizer"), ran.errors)
    return ran
end

local function run(at, ...)
    local ran = finish(at, start(at, ...))
    check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
    return ran
end

local function part(ran, rank, name)
    local parts = ran.json:match '\n  "parts": (%b[])'
    check(parts, ran.json .. ran.errors)
    local of = parts:match('{%s*"name": "rank ' .. rank .. ' on [^"]*".-"verdict"')
    check(of, parts)
    return tonumber(of:match('"' .. name .. '": ([%d.e+-]+)'))
end

local function sum(ran, name)
    local all = 0
    for rank = 0, RANKS - 1 do
        all = all + part(ran, rank, name)
    end
    return all
end

local function total(ran, name)
    local all = ran.json:match '\n  "total": (%b{})'
    return tonumber(all:match('"' .. name .. '": ([%d.e+-]+)'))
end

-- promise: docs/load-generator.md: `sxe-http-mpi` is `sxe-http` with its workers in the ranks that Open MPI's
-- `mpirun` starts. It has all options, and all ranks share one load.
test("four ranks together send each request once", function()
    local at <close> = place()
    local ran = run(at, "--requests", "1001", "-c", "10", at.url)
    local counts = {}
    at.server:signal("TERM")
    at.server:wait(120)
    for line in io.lines(at.path .. "/log") do
        local number = line:match '"GET /(%d+) '
        counts[number] = (counts[number] or 0) + 1
    end
    for i = 0, 1000 do
        equal(counts[("%05d"):format(i)], 1, "of " .. i)
    end
    check(ran.output:find("10/10 connections", 1, true), ran.output)
    check(ran.output:find("requests  1001  ok 1001  errors 0", 1, true), ran.output)
end)

-- promise: docs/load-generator.md: The sum is exact: the function that adds up the workers of one run adds up counts
-- and buckets of histograms.
test("the sum equals the counts of the ranks, in each trial", function()
    local at <close> = place()
    local ran = run(at, "--requests", "500", "-c", "8", "-R", "2k", "--trials", "3", at.url)
    equal(total(ran, "ok"), 1500)
    equal(sum(ran, "ok"), 1500)
    equal(total(ran, "opened"), 24)
    equal(sum(ran, "opened"), 24)
    local response = ran.json:match '\n  "total": %b{}':match '"response": (%b{})'
    equal(tonumber(response:match '"count": (%d+)'), 1500)
end)

-- promise: docs/load-generator.md: The report says how exactly the clocks are known (*clocks within*).
test("the report says how well the clocks agree", function()
    local at <close> = place()
    local ran = run(at, "-d", "1", "-R", "400", "-c", "256", at.url)
    -- The report has no room for this line if many ranks are suspect; the JSON always has the clocks.
    check(ran.status == 4 or ran.output:find("clocks within %d"), ran.output)
    for rank = 1, RANKS - 1 do
        local microseconds = part(ran, rank, "clock")
        check(microseconds > 0 and microseconds < 1e6, microseconds)
    end
end)

-- promise: docs/load-generator.md: So `--trials`, `--until-ci`, `--aa`, `--warmup auto`, `--find`, `--replay`,
-- scripts and every output are the same as with one client, and the exit status of `mpirun` is that of rank 0.
test("a search uses all ranks, and thresholds judge the sum", function()
    local at <close> = place()
    local found = finish(at, start(at, "--find", "p99<30s", "-R", "50", "-d", "1", "-c", "8", at.url))
    check(found.output:find("\nfound     ", 1, true), found.output .. found.errors)
    check(found.json:find '"found_rate": ', found.json)
    local missed = finish(at, start(at, "--requests", "400", "-c", "8", "--threshold", "p50<1us",
                                    at.url))
    check(missed.status == 3 or missed.status == 4, missed.status)
    check(missed.errors:find("threshold p50<1us is missed", 1, true), missed.errors)
end)

-- promise: docs/load-generator.md: One rank is one worker, so there is no `-t`;
test("-t is refused unless it is the number of ranks", function()
    local at <close> = place()
    local ran = finish(at, start(at, "-t", "3", at.url))
    equal(ran.status, 2)
    check(ran.errors:find("leave out -t", 1, true), ran.errors)
end)

-- promise: docs/load-generator.md: Without `mpirun` there is one rank.
test("sxe-http-mpi runs without mpirun", function()
    local at <close> = place()
    local proc = wire.spawn{wire.program("sxe-http-mpi"), "--requests", "10", "-c", "2", "-q",
                            "--timeout", "120", at.url, env = env}
    local output = proc:output()
    proc:wait(120)
    check(output:find("ok 10  errors 0", 1, true), output .. proc:errors())
    check(output:find("parts     %d of 1 kept up"), output)
end)

-- ---- Ranks that die, or stop ----

local function children(pid)
    return read(("/proc/%s/task/%s/children"):format(pid, pid))
end

-- How often a process slept and woke up. A worker wakes up for each request and for each reply.
local function wakes(pid)
    local status = pid and read(("/proc/%s/status"):format(pid)) or ""
    return tonumber(status:match "\nvoluntary_ctxt_switches:%s*(%d+)") or 0
end

-- The processes of a rank: the one that mpirun started, the agent that it started, and the agent's worker, once it
-- works.
local function processes_of(at, rank)
    local until_s = wire.time() + 120
    repeat
        local relay = read(at.path .. "/rank." .. rank):match "%d+"
        local agent = relay and children(relay):match "%d+"
        local worker = agent and children(agent):match "%d+"
        if wakes(worker) > 200 then
            return {relay = relay, agent = agent, worker = worker}
        end
        wire.sleep(0.05)
    until wire.time() > until_s
    error("no worker of rank " .. rank .. " is at work")
end

local function strike(signal, which)
    local at <close> = place()
    local proc = start(at, "-R", "400", "-c", "8", "-d", "100", "--drain", "1", at.url)
    local pid = processes_of(at, 2)[which]
    check(os.execute(("kill -%s %s"):format(signal, pid)))
    local ran = finish(at, proc)
    check(total(ran, "seconds") < 100, ran.json)
    check(sum(ran, "ok") > 0, ran.json)
    equal(sum(ran, "ok"), total(ran, "ok"))
    return ran
end

-- promise: docs/load-generator.md: A rank that dies, or that sends nothing for ten seconds, ends the run: standard
-- error names it, the results so far are reported, and the exit status is 1.
test("a rank that dies or stops is named in the report, and ends the run", function()
    for _, case in ipairs{{"KILL", "worker", "ended with signal 9"},
                          {"KILL", "agent", "has lost its agent"},
                          {"STOP", "agent", "has said nothing for too long"}} do
        local ran = strike(case[1], case[2])
        check(ran.errors:find("rank 2 on [^\n]* " .. case[3]), ran.errors)
        equal(ran.status, 1, ran.errors)
        check(ran.output:find("\nparts     ", 1, true), ran.output)
    end
end)

-- promise: docs/load-generator.md: A worker that is stopped for ten seconds ends the run in the same way.
test("a worker that is stopped ends the run", function()
    local ran = strike("STOP", "worker")
    check(ran.errors:find("rank 2 on [^\n]* was stopped for too long"), ran.errors)
    equal(ran.status, 1, ran.errors)
end)

-- promise: docs/load-generator.md: Then the load stops, the output files are written, and the run counts as
-- interrupted;
test("when mpirun ends the job the results so far are in a file", function()
    local ran = strike("KILL", "relay")
    check(ran.errors:find("exited on signal 9", 1, true), ran.errors)
    check(ran.json:find('"is_interrupted": true', 1, true), ran.json)
end)

-- promise: docs/load-generator.md: With `mpirun --enable-recovery` the job continues until rank 0 has named the rank
-- and reported.
test("with --enable-recovery the rank is named", function()
    table.insert(mpirun, 2, "--enable-recovery")
    local ran = strike("KILL", "relay")
    table.remove(mpirun, 2)
    check(ran.errors:find("rank 2 on [^\n]* has said nothing for too long"), ran.errors)
    check(ran.output:find("\nparts     ", 1, true), ran.output)
end)

-- promise: docs/load-generator.md: Each rank is judged separately, and a reason why the result is suspect names the
-- rank:
test("the report names a rank that cannot keep up", function()
    local at <close> = place()
    local proc = start(at, "-R", "400", "-c", "8", "-d", "12", at.url)
    local pid = processes_of(at, 3).worker
    for _ = 1, 3 do
        os.execute(("kill -STOP %s; sleep 0.5; kill -CONT %s; sleep 0.1"):format(pid, pid))
    end
    local ran = finish(at, proc)
    check(ran.json:match '\n  "verdict": (%b{})':find("rank 3 on [^\n]*stood still"), ran.json)
    equal(ran.status, 4, ran.errors)
end)

