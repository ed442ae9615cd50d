-- SPDX-License-Identifier: MIT
-- The access log has a line for each request, also while its file is renamed or its disk is full.

local http = require "http"
local httpd = require "httpd"

local function read_lines(path)
    local lines = {}
    local file <close> = assert(io.open(path))
    for line in file:lines() do
        lines[#lines + 1] = line
    end
    return lines
end

-- A path at which there is no file; <close> removes what the server writes there.
local temporary = {}
temporary.__index = temporary
function temporary.new()
    local path = os.tmpname()
    os.remove(path)
    return setmetatable({path = path}, temporary)
end
function temporary:__close()
    os.remove(self.path)
    os.remove(self.path .. ".1")
end

-- Start a server, call f(server, path), stop the server, and return the lines of its log.
local function log_of(f, ...)
    local log <close> = temporary.new()
    do
        local server <close> = httpd.start("--access-log", log.path, ...)
        f(server, log.path)
    end
    return read_lines(log.path)
end

local DATE = "%[%d%d/%u%l%l/%d%d%d%d:%d%d:%d%d:%d%d %+0000%]"
local PEER = "^127%.0%.0%.1 %- %- " .. DATE .. " "

local function check_matches(line, pattern)
    check(line and line:find(pattern), ("%q does not match %q"):format(line, pattern))
end

local function ask_three(server)
    http.ask(server, http.request("GET /a?b=c", "Referer: http://r/", "User-Agent: \"x\""))
    http.ask(server, "HEAD /b HTTP/1.0\r\n\r\n")
    http.ask(server, "rubbish\r\n\r\n")
end

local formats = {
    combined = {
        PEER .. '"GET /a%?b=c HTTP/1%.1" 200 14 "http://r/" "\\x22x\\x22"$',
        PEER .. '"HEAD /b HTTP/1%.0" 200 0 "%-" "%-"$',
        PEER .. '"%-" 400 %d+ "%-" "%-"$',
    },
    common = {
        PEER .. '"GET /a%?b=c HTTP/1%.1" 200 14$',
        PEER .. '"HEAD /b HTTP/1%.0" 200 0$',
        PEER .. '"%-" 400 %d+$',
    },
    json = {
        '^{"time":"%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ","status":200,"bytes":14,"duration_us":%d+,'
            .. '"peer":"127%.0%.0%.1","method":"GET","target":"/a%?b=c","version":"1%.1",'
            .. '"host":"a","referer":"http://r/","user_agent":"\\"x\\""}$',
        '"status":200,"bytes":0,.*"method":"HEAD","target":"/b","version":"1%.0"}$',
        '"status":400,.*"refused":"the method is not a token followed by one space"}$',
    },
}
for format, expected in pairs(formats) do
    test("--access-log-format " .. format, function()
        local lines = log_of(ask_three, "--access-log-format", format)
        equal(#lines, 3)
        for i, pattern in ipairs(expected) do
            check_matches(lines[i], pattern)
        end
    end)
end

test("the default of --access-log-format is combined", function()
    check_matches(log_of(ask_three)[1], formats.combined[1])
end)

test("lines are in the file after a second, while the server runs", function()
    log_of(function(server, path)
        server:check_answers()
        httpd.wait_until(function() return #read_lines(path) == 1 end, "a line")
    end)
end)

test("pipelined requests have a line each, in order", function()
    local lines = log_of(function(server)
        local sock <close> = server:connect()
        local requests = {}
        for i = 1, 1000 do
            requests[i] = http.request("GET /" .. i)
        end
        sock:pump(table.concat(requests) .. httpd.LAST)
        sock:recv_all()
    end)
    equal(#lines, 1001)
    for i = 1, 1000 do
        check_matches(lines[i], '"GET /' .. i .. ' HTTP')
    end
end)

test("no request can forge a line, or end a quoted field", function()
    local lines = log_of(function(server)
        http.ask(server, http.request("GET /", 'User-Agent: a" 200 1 "\t\xff\\'))
        http.ask(server, "GET /\r127.0.0.1 HTTP/1.1\r\nHost: a\r\n\r\n")
        http.ask(server, http.request("GET /%0d%0a127.0.0.1"))
    end)
    equal(#lines, 3)
    check_matches(lines[1], '"a\\x22 200 1 \\x22\\x09\\xFF\\x5C"$')
    check_matches(lines[3], '"GET /%%0d%%0a127%.0%.0%.1 HTTP/1%.1" 200 ')
    for _, line in ipairs(lines) do
        check(not line:find("[^ -~]"), line)
    end
end)

test("the log has no Authorization, no Cookie and no body", function()
    local lines = log_of(function(server)
        http.ask(server, http.request("POST /", "Authorization: Basic c2VjcmV0", "Cookie: secret",
                                      "Content-Length: 6") .. "secret")
    end, "--access-log-format", "json")
    check(not lines[1]:find("secret"), lines[1])
    check(not lines[1]:find("c2VjcmV0"), lines[1])
end)

test("the log is renamed again and again under load: no line is lost or torn", function()
    local log <close> = temporary.new()
    local ROUNDS <const> = 10
    local total, lines = 0, {}
    local function collect(path)
        for _, line in ipairs(read_lines(path)) do
            lines[#lines + 1] = line
        end
    end
    do
        local server <close> = httpd.start("--access-log", log.path)
        local sock <close> = server:connect()
        for round = 1, ROUNDS do
            for _ = 1, 100 do
                sock:send(httpd.GET:rep(10))
                for _ = 1, 10 do
                    equal(sock:read_reply().status, 200)
                end
                total = total + 10
            end
            os.rename(log.path, log.path .. "." .. round)
            server.proc:signal(round % 2 == 0 and "HUP" or "USR1")
            httpd.wait_until(function()
                local file = io.open(log.path)
                return file and file:close()
            end, "the file, again")
        end
    end
    for round = 1, ROUNDS do
        collect(log.path .. "." .. round)
        os.remove(log.path .. "." .. round)
    end
    collect(log.path)
    equal(#lines, total)
    for _, line in ipairs(lines) do
        check_matches(line, PEER .. '"GET / HTTP/1%.1" 200 14 "%-" "%-"$')
    end
end)

test("a full disk is reported, and no request fails", function()
    local server <close> = httpd.start("--access-log", "/dev/full")
    local sock <close> = server:connect()
    for _ = 1, 200 do
        sock:send(httpd.GET:rep(50))
        for _ = 1, 50 do
            equal(sock:read_reply().status, 200)
        end
    end
    check(server.proc:errors():find("No space left on device; lines are dropped", 1, true),
          server.proc:errors())
end)

httpd.test_soon("a pipe that nobody reads delays neither requests nor the server's end", function()
    local pipe <close> = temporary.new()
    assert(os.execute("mkfifo " .. pipe.path))
    local keeper <close> = wire.spawn{"sh", "-c", 'exec 3<>"$1"; echo open; sleep 3600', "sh",
                                      pipe.path}
    equal(keeper:line(), "open")
    local server <close> = httpd.start("--access-log", pipe.path)
    local sock <close> = server:connect()
    local slowest = 0
    for _ = 1, 200 do
        slowest = math.max(slowest, server:seconds_of(function()
            sock:send(httpd.GET:rep(50))
            for _ = 1, 50 do
                equal(sock:read_reply().status, 200)
            end
        end))
    end
    check(slowest < 0.5 * httpd.slack, slowest .. " s")
    check(server.proc:errors():find("temporarily unavailable; lines are dropped", 1, true),
          server.proc:errors())
end)

test("- means standard output, and nothing else is written there", function()
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--access-log", "-"}
    local port
    httpd.wait_until(function()
        port = proc:errors():match("listening on http://127%.0%.0%.1:(%d+)/\n")
        return port
    end, "where it listens, on standard error")
    local sock <close> = wire.connect("127.0.0.1", tonumber(port))
    sock:send(httpd.LAST)
    equal(sock:read_reply().status, 200)
    check_matches(proc:line(5), PEER .. '"GET / HTTP/1%.1" 200 14 "%-" "%-"$')
    proc:signal("TERM")
    equal(proc:wait(5), 0)
end)

test("a client of a unix socket has no address in the log", function()
    local socket <close> = temporary.new()
    local lines = log_of(function()
        local sock <close> = wire.connect(socket.path)
        sock:send(httpd.LAST)
        equal(httpd.undated(sock:recv_all()), httpd.hello("close"))
    end, "--unix", socket.path)
    check_matches(lines[1], "^unix %- %- " .. DATE .. ' "GET / ')
end)

local V2 = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" .. "\xc0\0\2\x2a" .. "\x7f\0\0\1" .. "\x30\x39\0\x50"

for name, header in pairs{["version 1"] = "PROXY TCP4 192.0.2.42 127.0.0.1 12345 80\r\n",
                          ["version 2"] = V2} do
    test("the address is the one in a trusted proxy's header, " .. name, function()
        local lines = log_of(function(server)
            local sock <close> = server:connect()
            sock:send(header .. httpd.GET .. httpd.LAST)
            equal(httpd.undated(sock:recv_all()), httpd.hello() .. httpd.hello("close"))
        end, "--proxy-from", "127.0.0.1")
        equal(#lines, 2)
        check_matches(lines[1], "^192%.0%.2%.42 %- %- ")
        check_matches(lines[2], "^192%.0%.2%.42 %- %- ")
    end)
end

test("a client that leaves before its reply is in the log, with its address", function()
    local lines = log_of(function(server)
        local sock = server:connect()
        sock:send("POST /gone HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
        server:check_answers()
        sock:reset()
        server:check_answers()
    end)
    local found
    for _, line in ipairs(lines) do
        found = line:find('^127%.0%.0%.1 .* "POST /gone HTTP/1%.1" 499 0 ') and line or found
    end
    check(found, table.concat(lines, "\n"))
end)

-- While the server is stopped, the connection waits in the backlog, where the reset meets it.
test("a client that resets its connection before it is accepted is in the log, with its address", function()
    local lines = log_of(function(server)
        server.proc:signal("STOP")
        httpd.wait_until(function()
            local file <close> = io.open(("/proc/%d/stat"):format(server.pid))
            return file:read("a"):match("%) (%u)") == "T"
        end, "a stopped server")
        local sock = server:connect()
        sock:send(http.request("GET /early"))
        sock:reset()
        server.proc:signal("CONT")
        http.ask(server, http.request("GET /after"))
    end)
    equal(#lines, 2, table.concat(lines, "\n"))
    check_matches(table.concat(lines, "\n"):match "[^\n]*/early[^\n]*", PEER .. '"GET /early HTTP/1%.1" %d+ %d+ ')
end)
