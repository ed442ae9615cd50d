-- SPDX-License-Identifier: MIT
--
-- A running sxe-httpd, and its expected replies. `local server <close> = httpd.start()` stops the server at the end of
-- the block, and checks its exit status.

local httpd = {}
httpd.__index = httpd

-- Requests for the greeting, and the body of its reply.
httpd.GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
httpd.HEAD = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
httpd.LAST = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
httpd.BODY = "Hello, World!\n"

-- The expected reply to a correct request, its date replaced by "-". `connection`: the value of Connection, nil: none.
function httpd.hello(connection, method)
    return "HTTP/1.1 200 OK\r\nDate: -\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n"
        .. (connection and "Connection: " .. connection .. "\r\n" or "") .. "\r\n"
        .. (method == "HEAD" and "" or httpd.BODY)
end

-- The replies with each date replaced by "-". Text that is no date stays, so that a comparison fails.
function httpd.undated(replies)
    return (replies:gsub("\r\nDate: %u%l%l, %d%d %u%l%l %d%d%d%d %d%d:%d%d:%d%d GMT\r\n",
                         "\r\nDate: -\r\n"))
end

-- Start a command that ends in options of sxe-httpd, and read from its first line where the server listens.
function httpd.spawn(command)
    local proc = wire.spawn(command)
    local first = proc:line(20)
    local url = first and first:match("^listening on (http://.*/)$")
    if not url then
        error(("expected sxe-httpd to listen, got %q and %q"):format(first, proc:errors()), 2)
    end
    local ip, port = url:match("^http://%[?([%x.:]+)%]?:(%d+)/$")
    return setmetatable({proc = proc, pid = proc:pid(), url = url, ip = ip, port = tonumber(port)},
                        httpd)
end

function httpd.start(...)
    return httpd.spawn{wire.program("sxe-httpd"), "-p", "0", ...}
end

-- Start a sxe-httpd that speaks HTTPS.
function httpd.start_tls(...)
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", "0", ...}
    local first = proc:line(60)
    local port = first and first:match("^listening on https://127%.0%.0%.1:(%d+)/$")
    check(port, ("%q and %q"):format(first, proc:errors()))
    return setmetatable({proc = proc, pid = proc:pid(), ip = "127.0.0.1", port = tonumber(port)}, httpd)
end

function httpd:connect(receive_buffer)
    return wire.connect(self.ip, self.port, receive_buffer)
end

-- Check that the server answers a request on a new connection.
function httpd:check_answers()
    local sock <close> = self:connect()
    sock:send(httpd.LAST)
    equal(httpd.undated(sock:recv_all()), httpd.hello("close"))
end

-- Wait until the server has at most `expected` open descriptors.
function httpd:check_descriptors(expected)
    httpd.wait_until(function() return wire.fds(self.pid) <= expected end,
                     ("%d descriptors at most"):format(expected))
end

function httpd:stop()
    self.proc:signal("TERM")
    equal(self.proc:wait(20), 0, "exit status of sxe-httpd after SIGTERM: " .. self.proc:errors())
    check(not self.proc:errors():find("Sanitizer"), self.proc:errors())
end

function httpd:__close(failure)
    if failure == nil then
        self:stop()
    end
end

function httpd.wait_until(condition, what)
    local deadline = wire.time() + 120
    while not condition() do
        if wire.time() > deadline then
            error("expected within 120 seconds: " .. what, 2)
        end
        wire.sleep(0.005)
    end
end

-- Wait until the server sleeps, because it has nothing left to do. One look is not enough: the server may be about to
-- wake up.
function httpd:rest()
    local asleep = 0
    httpd.wait_until(function()
        local file <close> = io.open(("/proc/%d/stat"):format(self.pid))
        asleep = file:read("a"):match("%) (%u)") == "S" and asleep + 1 or 0
        return asleep == 5
    end, "a server that has done its work")
end

-- Checks that the server does not spin while nothing happens.
function httpd:check_idle()
    self:rest()
    local began, _, _, before = wire.time(), wire.cpu(self.pid)
    wire.sleep(1)
    local _, _, after = wire.cpu(self.pid)
    local seconds = wire.time() - began
    check(after - before < 0.05 * seconds, ("%.3f s of CPU in %.3f s"):format(after - before, seconds))
end

local function first_success(f, paces)
    for i, pace in ipairs(paces) do
        if i == #paces or pcall(f, pace) then
            return i == #paces and f(pace)
        end
    end
end

-- A test in real time: f(pace) multiplies its times by the pace, which is 1 at first; if f fails, it is called again
-- with 4, then 16, because the machine may be busy. A real fault fails at each pace.
function httpd.test_at_a_pace(name, f)
    test(name, function() first_success(f, {1, 4, 16}) end)
end

-- A test of an upper bound of time, which a busy machine can exceed: the test passes if one of ten attempts does.
function httpd.test_soon(name, f)
    test(name, function() first_success(f, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}) end)
end

-- A number of seconds as the value of an option.
function httpd.seconds(number)
    return ("%.3f"):format(number)
end

-- Seconds for which the server and this process were ready to run, but other processes had the CPUs.
local function waited(pid)
    local sum = 0
    for _, who in ipairs{"self", pid} do
        local file <close> = io.open(("/proc/%s/schedstat"):format(who))
        sum = sum + (file and file:read("a"):match("%d+ (%d+)") or 0) / 1e9
    end
    return sum
end

-- How many seconds an action takes, without the time that other processes took from this one and the server.
function httpd:seconds_of(action)
    local begun, before = wire.time(), waited(self.pid)
    action()
    return wire.time() - begun - (waited(self.pid) - before)
end

-- Sanitizers multiply the memory that a program needs: tests multiply their limits of memory and time by this factor.
httpd.slack = (os.getenv("SXE_BUILD") or "release"):find("release") and 1 or 4

return httpd
