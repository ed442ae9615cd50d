-- SPDX-License-Identifier: MIT
--
-- Formats of the access log to order, by docs/observability.md.

local http = require "http"
local httpd = require "httpd"
local json = require "json-text"

-- The lines of the log of a server with this format, and these options, after f(server).
local function lines_of(format, f, ...)
    local path = os.tmpname()
    do
        local server <close> = httpd.start("--access-log", path, "--access-log-format", format, ...)
        f(server)
    end
    local lines = {}
    for line in io.lines(path) do lines[#lines + 1] = line end
    os.remove(path)
    return lines
end

-- The only line of such a log after one request.
local function line_of(format, ...)
    local request = http.request(...)
    local lines = lines_of(format, function(server) http.ask(server, request) end)
    equal(#lines, 1)
    return lines[1]
end

-- The exit status of --check with this format, and what it says.
local function checked(format)
    local proc <close> = wire.spawn{wire.program "sxe-httpd", "--access-log", "a", "--access-log-format", format, "--check"}
    return proc:wait(5), proc:errors()
end

-- promise: docs/observability.md: `$name`, or `${name}` before a letter. `$$` is a dollar
test("a line has the variables of its format", function()
    equal(line_of("${remote_addr}x $$ $status $body_bytes_sent $host $worker", "GET /"), "127.0.0.1x $ 200 14 a 0")
    local line = line_of("$time_local,$time_iso8601,$request_time,$duration_us", "GET /")
    check(line:find "^%d%d/%u%l%l/%d%d%d%d:%d%d:%d%d:%d%d %+0000,%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ,%d+%.%d%d%d,%d+$", line)
end)

-- promise: docs/observability.md: an unknown variable is an error that names the most similar one
test("an unknown variable is refused", function()
    local status, said = checked "$remote_add"
    equal(status, 2)
    check(said:find("$remote_add is no variable; did you mean $remote_addr?", 1, true), said)
end)

-- promise: docs/observability.md: In a configuration file the option is `access_log_format`.
test("a configuration file and the environment have a format, and --print-config prints it", function()
    local path, log = os.tmpname(), os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write("return { access_log = '", log, [[', access_log_format = '{"s":$status}' }]])
    file:close()
    do
        local server <close> = httpd.start("--config", path)
        server:check_answers()
    end
    equal(assert(io.open(log)):read "a", '{"s":200}\n')
    local proc <close> = wire.spawn{"env", "SXE_ACCESS_LOG_FORMAT=$host", wire.program "sxe-httpd", "--config", path,
                                    "--print-config"}
    equal(proc:wait(5), 0)
    local said = proc:output()
    check(said:find('access_log_format = "$host", -- SXE_ACCESS_LOG_FORMAT', 1, true), said)
    os.remove(path)
    os.remove(log)
end)

-- promise: docs/observability.md: `$http_NAME` | the first header of that name, with `_` for `-`: `$http_user_agent`; for any header
test("any header is a variable", function()
    equal(line_of("$http_x_tenant|$http_user_agent", "GET /", "X-Tenant: b", "x-tenant: c", "User-Agent: d"), "b|d")
end)

-- promise: docs/observability.md: A missing text is `-`. An empty text is `-`, too, unless the format has it in
-- double quotes.
test("a missing text is a dash", function()
    equal(line_of('$http_b $http_c "$http_b" "$http_c" $remote_user $trace_id $ssl_protocol', "GET /", "C:"),
          '- - "-" "" - - -')
end)

-- promise: docs/observability.md: **No client can forge a line or a field.**
test("no header forges a field, whatever it holds", function()
    local bytes = {}
    for byte = 0x20, 0xff do bytes[#bytes + 1] = byte ~= 0x7f and string.char(byte) or nil end
    local all = "x" .. table.concat(bytes, nil, 1, #bytes) .. "\tx"
    for _, mark in ipairs{" ", "|", ";", ",", "\t", "<", "]", "a", "'"} do
        local format = "${status}" .. mark .. "${http_b}" .. mark .. "${http_c}" .. mark .. "$worker"
        local line, fields = line_of(format, "GET /", "B: " .. all, "C: " .. all), 0
        for _ in (line .. mark):gmatch("([^" .. mark .. "]*)" .. mark) do fields = fields + 1 end
        equal(fields, 4)
        check(not line:find("[^ -~\t]"), line)
    end
    local line = line_of('"$http_b" "$http_c"', "GET /", "B: " .. all, "C: " .. all)
    check(line:find '^"[^"]*" "[^"]*"$', line)
end)

-- promise: docs/observability.md: each byte that is in the format directly before or after the variable
test("the bytes next to a variable are escaped in it", function()
    equal(line_of("[$http_b]$http_c-", "GET /", "B: [b]-", "C: -]["), "[\\x5Bb\\x5D-]\\x2D\\x5D[-")
end)

-- promise: docs/observability.md: variables are escaped as in JSON strings, and a missing text is empty
test("JSON is JSON, whatever a client sends", function()
    local bytes = {}
    for byte = 0x20, 0xff do bytes[#bytes + 1] = byte ~= 0x7f and string.char(byte) or nil end
    local all = "x" .. table.concat(bytes) .. "\tx"
    local line = line_of('{"a":"$http_b","none":"$http_none","n":[$status,$body_bytes_sent,$request_time,$duration_us,$worker]}',
                         "GET /", "B: " .. all)
    local value = json.decode(line)
    equal(value.none, "")
    equal(#value.n, 5)
    equal(value.n[1], 200)
    local expected = {}
    for _, code in ipairs{all:byte(1, -1)} do expected[#expected + 1] = utf8.char(code) end
    equal(value.a, table.concat(expected)) -- each byte is the character with its number
end)

-- promise: docs/observability.md: may be without quotes; another variable without quotes is refused. Brackets and
-- quotes must match.
test("JSON that a client could change is refused", function()
    for format, problem in pairs{
        ['{"a":$host}'] = "so it is JSON, where $host must stand in double quotes",
        ['{"a":$http_b}'] = "so it is JSON, where $http_b must stand in double quotes",
        ['{"a":$time_local}'] = "so it is JSON, where $time_local must stand in double quotes",
        ['{"a":[$status}'] = "its brackets do not match",
        ['{"a":"$status}'] = "its last double quote has no second one",
    } do
        local status, said = checked(format)
        equal(status, 2)
        check(said:find(problem, 1, true), said)
    end
end)

-- promise: docs/observability.md: A format has at most 2,047 bytes, 64 variables and texts between them, and 24
-- variables whose values clients choose. Each of these values is cut after 1,200 bytes.
test("a format has limits", function()
    equal(checked(("$status"):rep(64)), 0)
    equal(checked(("$status"):rep(65)), 2)
    equal(checked(("$http_b"):rep(24)), 0)
    equal(checked(("$http_b"):rep(25)), 2)
    equal(checked("${status}" .. ("x"):rep(2038)), 0)
    equal(checked("${status}" .. ("x"):rep(2039)), 2)
    equal(line_of("$http_b,$http_c", "GET /", "B: " .. ("b"):rep(3000), "C: c"), ("b"):rep(1200) .. ",c")
end)

-- promise: docs/observability.md: `$worker` | the number of the worker, from 0
test("all workers write to one log, and say who they are", function()
    local lines = lines_of("$worker $request_uri", function(server)
        local socks = {}
        for i = 1, 16 do
            socks[i] = server:connect()
            socks[i]:send(http.request("GET /" .. i))
            socks[i]:read_reply()
        end
        for _, sock in ipairs(socks) do sock:close() end
    end, "-w", "2")
    equal(#lines, 16)
    local seen = {}
    for _, line in ipairs(lines) do seen[assert(line:match "^([01]) /%d+$", line)] = true end
    check(seen["0"] and seen["1"], "one worker answered all")
end)
