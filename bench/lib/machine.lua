-- SPDX-License-Identifier: MIT
--
-- What: describes the machine of the measurement, and tells which process used its CPUs for how
-- long.
-- Place: clocks.lua and others.lua call it; the fingerprint stands beside every number.
--
-- Seconds of CPU are the scheduler's own: exact where a process has one thread, else in ticks of
-- 10 ms.

local machine = {}

local SYSTEM = "/sys/devices/system/"
local TICKS = 100 -- ticks a second in /proc/stat, whatever the kernel's HZ

local function read(path)
    local file <close> = io.open(path)
    return file and file:read("a") or ""
end

function machine.first_line(command)
    local pipe <close> = io.popen("(" .. command .. ") 2>&1")
    return pipe:read("l") or "?"
end

-- ---- Clocks ----

-- The pids of a process and of all its descendants.
function machine.tree(pid)
    local pids, i = {pid}, 1
    while pids[i] do
        for child in read(("/proc/%d/task/%d/children"):format(pids[i], pids[i])):gmatch("%d+") do
            pids[#pids + 1] = tonumber(child)
        end
        i = i + 1
    end
    return pids
end

-- The fields of /proc/PID/stat after the name, numbered as in proc(5).
local function fields_of(text)
    local fields, number = {}, 2
    for word in text:gmatch("%S+") do
        number = number + 1
        fields[number] = tonumber(word)
    end
    return fields
end

local function stat_of(path)
    return fields_of((read(path):gsub("^.*%) ", "")))
end

-- The CPU seconds of these processes and of their children that have ended.
function machine.busy(pids)
    local sum = 0
    for _, pid in ipairs(pids) do
        local stat = stat_of(("/proc/%d/stat"):format(pid))
        if stat[17] then
            local main = read(("/proc/%d/schedstat"):format(pid)):match("%d+") or 0
            sum = sum + math.max((stat[14] + stat[15]) / TICKS, main / 1e9)
                  + (stat[16] + stat[17]) / TICKS
        end
    end
    return sum
end

-- The CPU seconds of the driver and of its children that have ended.
function machine.busy_here()
    local stat = stat_of("/proc/self/stat")
    return (stat[14] + stat[15] + stat[16] + stat[17]) / TICKS
end

-- The pid of the driver.
function machine.self()
    return tonumber(read("/proc/self/stat"):match("^%d+"))
end

local LIST = "grep -s '' /proc/[0-9]*/stat /proc/[0-9]*/task/[0-9]*/schedstat"

-- All processes, by pid: {name, parent, own = seconds that it ran, ended = seconds of its children
-- that have ended}
function machine.processes()
    local list, exact = {}, {}
    local pipe <close> = io.popen(LIST)
    for line in pipe:lines() do
        local pid, name, rest = line:match("^/proc/(%d+)/stat:%d+ %((.*)%) (.*)$")
        if pid then
            local stat = fields_of(rest)
            list[tonumber(pid)] = {name = name, parent = stat[4],
                                   own = (stat[14] + stat[15]) / TICKS,
                                   ended = (stat[16] + stat[17]) / TICKS}
        else
            local of, ran = line:match("^/proc/(%d+)/task/%d+/schedstat:(%d+)")
            of = tonumber(of)
            exact[of or 0] = (exact[of or 0] or 0) + (tonumber(ran) or 0) / 1e9
        end
    end
    for pid, process in pairs(list) do
        process.own = math.max(process.own, exact[pid] or 0)
    end
    return list
end

-- ---- The machine and the sources ----

-- The short name of the sources' commit, with "-dirty" after it if files have changed; or nil.
function machine.commit()
    local name = machine.first_line("git describe --always --dirty --exclude '*' 2>/dev/null")
    return name ~= "?" and name or nil
end

local function cpu_of_machine()
    local model, cores = "?", 0
    for line in io.lines("/proc/cpuinfo") do
        model = line:match("^model name%s*: (.*)") or model
        cores = cores + (line:find("^processor") and 1 or 0)
    end
    return model, cores
end

-- {cpu, cpus, memory_mib, kernel, congestion_control, compiler, virtual, ours, date, text}
function machine.fingerprint()
    local model, cores = cpu_of_machine()
    local found = {
        cpu = model, cpus = cores, kernel = machine.first_line("uname -sr"),
        compiler = machine.first_line("gcc --version"),
        memory_mib = read("/proc/meminfo"):match("MemTotal:%s*(%d+)") // 1024,
        is_virtual = read("/proc/cpuinfo"):find("hypervisor", 1, true) ~= nil,
        clocksource = read(SYSTEM .. "clocksource/clocksource0/current_clocksource"):match("%S+"),
        governor = read(SYSTEM .. "cpu/cpu0/cpufreq/scaling_governor"):match("%S+"),
        descriptors = machine.first_line("ulimit -Hn"),
        congestion_control = read("/proc/sys/net/ipv4/tcp_congestion_control"):match("%S+"),
        ours = machine.first_line(wire.program("sxe-httpd") .. " --version"),
        date = os.date("!%Y-%m-%d"),
    }
    found.text = ("%s, %d CPUs%s, %d MiB, %s, TCP %s, %s, %s"):format(
        model, cores, found.is_virtual and " of a virtual machine" or "", found.memory_mib,
        found.kernel, found.congestion_control or "?", found.compiler, found.ours)
    return found
end

return machine
