-- SPDX-License-Identifier: MIT
--
-- sxe-http-mpi on four hosts, which are network namespaces on a bridge; the ranks communicate over TCP.

local path = os.tmpname()
os.remove(path)

local function succeeds(format, ...)
    return (os.execute(format:format(...) .. " >/dev/null 2>&1"))
end

local function skip(why)
    print("skipped: sxe-http-mpi on several hosts, because " .. why)
end

local file = io.open(wire.program("sxe-http-mpi"))
if not file or not wire.has("mpirun") then
    skip("Open MPI is not installed")
    return
end
file:close()
local id = path:match "[^_]*$" -- six letters, so that an interface can be called after it
local bridge = "sxb" .. id
if not succeeds("ip netns add %s", bridge) then
    skip("no network namespace can be made (ip netns add)")
    return
end

local HOSTS = 4
local function host(number)
    return ("sx%s%d"):format(id, number)
end
local function address(number)
    return "10.77.0." .. number
end

local function sh(format, ...)
    check(os.execute(format:format(...)))
end

local function write(name, text)
    local out <close> = assert(io.open(path .. "/" .. name, "w"))
    out:write(text)
end

local function remove_hosts()
    for i = 1, HOSTS do
        succeeds("ip netns del %s", host(i))
    end
    succeeds("ip netns del %s", bridge)
    os.execute("rm -rf " .. path)
end

local function add_hosts()
    sh("mkdir %s", path)
    sh("ip -n %s link add br0 type bridge && ip -n %s link set br0 up", bridge, bridge)
    local slots = {}
    for i = 1, HOSTS do
        local ns = host(i)
        sh("ip netns add %s && ip -n %s link set lo up", ns, ns)
        sh("ip -n %s link add p%d type veth peer name eth0 netns %s", bridge, i, ns)
        sh("ip -n %s link set p%d master br0 up && ip -n %s link set eth0 up", bridge, i, ns)
        sh("ip -n %s addr add %s/24 dev eth0", ns, address(i))
        slots[i] = address(i) .. " slots=1\n"
    end
    write("hosts", table.concat(slots))
    -- The command that Open MPI runs instead of ssh. Each host needs its own TMPDIR: Open MPI's agents create and
    -- remove files there, and those of several hosts would remove each other's.
    write("rsh", ([[#!/bin/sh
host=sx%s${1##*.}
export TMPDIR=%s/$host
mkdir -p "$TMPDIR"
shift
exec ip netns exec $host sh -c "$*"
]]):format(id, path))
    sh("chmod +x %s/rsh", path)
end

local function serve(port)
    local server = wire.spawn{"ip", "netns", "exec", host(1), wire.program("sxe-httpd"), "-i",
                              "0.0.0.0", "-p", tostring(port)}
    server:line(120)
    return server
end

local function start(...)
    local words = {"ip", "netns", "exec", host(1), "mpirun", "--allow-run-as-root", "--hostfile",
                      path .. "/hosts", "--mca", "plm_rsh_agent", path .. "/rsh", "--mca", "btl",
                      "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca",
                      "oob_tcp_if_include", "eth0", "-np", tostring(HOSTS), "-x", "ASAN_OPTIONS",
                      wire.program("sxe-http-mpi"), "-q", "--timeout", "120", ...}
    words.env = {ASAN_OPTIONS = "detect_leaks=0", TMPDIR = path}
    return wire.spawn(words)
end

local function finish(proc)
    local output = proc:output(240)
    return {status = proc:wait(120), output = output, errors = proc:errors()}
end

local function check_sum()
    local server <close> = serve(8000)
    local ran = finish(start("--requests", "400", "-c", "8", "-R", "1k",
                             ("http://%s:8000/"):format(address(1))))
    check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
    check(ran.output:find("requests  400  ok 400  errors 0", 1, true), ran.output)
    check(ran.output:find("parts     %d of 4 kept up"), ran.output)
    check(ran.status == 4 or ran.output:find("clocks within %d"), ran.output)
    check(server)
end

local is_made, problem = pcall(add_hosts)
if not is_made then
    remove_hosts()
    skip("namespaces cannot be joined here: " .. tostring(problem):match "[^\n]*")
    return
end

test("four hosts make one load", check_sum)

if succeeds("ip netns exec %s tc qdisc add dev eth0 root netem delay 20ms", host(2)) then
    test("four hosts make one load, one of them 20 ms away", check_sum)
    succeeds("ip netns exec %s tc qdisc del dev eth0 root", host(2))
else
    print("skipped: sxe-http-mpi with a slow network, because the kernel has no netem")
end

-- promise: docs/load-generator.md: When a machine cannot be reached any more, rank 0 reports in the same way, but
-- `mpirun` may then wait for that machine until it is interrupted.
test("there is a report although a host is cut off", function()
    local server <close> = serve(8000)
    local json = path .. "/json"
    local proc = start("-R", "200", "-c", "8", "-d", "100", "--drain", "1", "--json", json,
                       ("http://%s:8000/"):format(address(1)))
    -- The second line of output says that all sockets are open.
    proc:line(120)
    proc:line(120)
    wire.sleep(1)
    sh("ip -n %s link set p3 down", bridge)
    local until_s = wire.time() + 120
    local written
    repeat -- until the results file is complete
        wire.sleep(0.05)
        local file <close> = io.open(json)
        written = file and file:read("a") or ""
    until written:find '"status": 1,' or wire.time() > until_s
    check(written:find '"status": 1,', written)
    sh("ip -n %s link set p3 up", bridge)
    proc:signal("TERM")
    local errors = finish(proc).errors
    check(errors:find("rank 2 on [^\n]* has said nothing for too long"), errors)
    check(server)
end)

remove_hosts()
