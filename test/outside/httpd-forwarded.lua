-- SPDX-License-Identifier: MIT
--
-- Clients that a proxy names, by docs/operations.md. The driver is the proxy: 127.0.0.1, which servers trust or not.

local http = require "http"
local httpd = require "httpd"
local script = require "script"

local APP <const> = [[return function(req) return req.peer .. " " .. req.scheme .. " " .. (req.host or "-") end]]
local TRUST <const> = "127.0.0.1,10.0.0.0/8,2001:db8:1::/48"

-- The reply of a server with these options to each of the lists of fields.
local function answers(options, ...)
    local server <close> = script.start(APP, table.unpack(options))
    local sock <close> = server:connect()
    local found = {}
    for i, fields in ipairs{...} do
        sock:send(http.request("GET /", table.unpack(fields)))
        found[i] = sock:read_reply().body
    end
    return table.unpack(found)
end

local function forwarded(...) return answers({"--trust-from", TRUST, "--forwarded", "forwarded"}, ...) end
local function x_forwarded(...) return answers({"--trust-from", TRUST, "--forwarded", "x-forwarded"}, ...) end

-- promise: docs/operations.md: It ignores the fields of a client that is not trusted
test("a peer that is not trusted names nobody", function()
    local fields <const> = {"Forwarded: for=192.0.2.7;proto=https;host=evil", "X-Forwarded-For: 192.0.2.7",
                            "X-Forwarded-Proto: https", "X-Forwarded-Host: evil"}
    for _, name in ipairs{"forwarded", "x-forwarded"} do
        equal(answers({"--trust-from", "10.0.0.0/8,127.0.0.2,::1,unix", "--forwarded", name}, fields), "127.0.0.1 http a")
    end
    equal(answers({"--trust-from", TRUST}, fields), "127.0.0.1 http a")
    equal(answers({"--trust-from", TRUST, "--forwarded", "none"}, fields), "127.0.0.1 http a")
end)

-- promise: docs/operations.md: The server ignores the other kind of field, because a proxy may pass on a client's own
-- text there.
test("one of the two fields counts, never both", function()
    local f <const>, x <const> = "Forwarded: for=192.0.2.1;host=f;proto=https", "X-Forwarded-For: 192.0.2.2"
    equal(forwarded{f, x, "X-Forwarded-Host: x", "X-Forwarded-Proto: https"}, "192.0.2.1 https f")
    equal(forwarded{x, "X-Forwarded-Host: x", "X-Forwarded-Proto: https"}, "127.0.0.1 http a")
    equal(x_forwarded{f, x}, "192.0.2.2 http a")
    equal(x_forwarded{f}, "127.0.0.1 http a")
end)

-- promise: docs/operations.md: The server reads addresses from the right
test("a client cannot forge its address through a trusted chain", function()
    local a, b, c, d = forwarded({"Forwarded: for=198.51.100.1, for=192.0.2.7"},
                                 {"Forwarded: for=198.51.100.1, for=192.0.2.7, for=10.0.0.1"},
                                 {"Forwarded: for=10.0.0.9", "Forwarded: for=192.0.2.7", "Forwarded: for=10.0.0.2,for=10.0.0.1"},
                                 {'Forwarded: for=192.0.2.9, for="[2001:db8:2::7]:4711", for="[2001:db8:1::1]"'})
    equal(a, "192.0.2.7 http a")
    equal(b, "192.0.2.7 http a")
    equal(c, "192.0.2.7 http a")
    equal(d, "2001:db8:2::7 http a")
    a, b, c, d = x_forwarded({"X-Forwarded-For: 198.51.100.1, 192.0.2.7"}, {"X-Forwarded-For: 198.51.100.1,192.0.2.7:80,10.0.0.1"},
                             {"X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 2001:db8:2::7, 2001:db8:1::1"},
                             {"X-Forwarded-For: 192.0.2.9, [2001:db8:2::7]:80, [2001:db8:1::1]"})
    equal(a, "192.0.2.7 http a")
    equal(b, "192.0.2.7 http a")
    equal(c, "2001:db8:2::7 http a")
    equal(d, "2001:db8:2::7 http a")
end)

-- promise: docs/operations.md: So an address that a client itself puts on the left does not count.
test("garbage to the left changes nothing", function()
    local rubbish <const> = {'for="', 'for="\\', '"', "=", "for=1.2.3.4;for=1.2.3.4", 'for=x, host="a b"', ",,;;", "\xff\xfe", 'x="\t', "for=::1"}
    for _, text in ipairs(rubbish) do
        local one, two = forwarded({"Forwarded: " .. text .. ", for=192.0.2.7;proto=https"},
                                   {"Forwarded: " .. text, "Forwarded: for=192.0.2.7, for=10.0.0.1"})
        equal(one, "192.0.2.7 https a", text)
        equal(two, "192.0.2.7 http a", text)
        equal(x_forwarded{"X-Forwarded-For: " .. text .. ", 192.0.2.7"}, "192.0.2.7 http a", text)
    end
end)

-- promise: docs/operations.md: The server stops before an invalid element, and at an element that hides its address
-- (`unknown`, `_name`): then the client is the proxy that sent that element.
test("the walk ends at garbage and at hidden addresses", function()
    for _, text in ipairs{"for=unknown", "for=_hidden", 'for="_hidden:_port"', "for=a.example", "for=10.0.0.256", "for=[::1]", "for=10.0.0.1:80",
                          'for="[::1%lo]"', 'for="::1"', "rubbish"} do
        local one, two = forwarded({"Forwarded: for=192.0.2.7, " .. text}, {"Forwarded: for=192.0.2.7, " .. text .. ", for=10.0.0.1"})
        equal(one, "127.0.0.1 http a", text)
        equal(two, "10.0.0.1 http a", text)
    end
    for _, text in ipairs{"unknown", "_hidden", "a.example", "10.0.0.256", "[::1", "rubbish", "127.1", "for=10.0.0.1"} do
        equal(x_forwarded{"X-Forwarded-For: 192.0.2.7, " .. text .. ", 10.0.0.1"}, "10.0.0.1 http a", text)
    end
end)

-- promise: docs/operations.md: the last address counts. If that address is trusted, too, the address before it
-- counts, and so on
test("a hundred hops are walked, and a thousand", function()
    local limits <const> = {"--trust-from", TRUST, "--max-line", "32k", "--max-header", "48k"}
    local function with(...) return table.move({...}, 1, select("#", ...), #limits + 1, table.move(limits, 1, #limits, 1, {})) end
    for _, hops in ipairs{100, 1000} do
        local list = {}
        for i = 1, hops do list[i] = ("10.%d.%d.1"):format(i // 250, i % 250) end
        local for_list = {}
        for i, ip in ipairs(list) do for_list[i] = "for=" .. ip end
        equal(answers(with("--forwarded", "x-forwarded"), {"X-Forwarded-For: 198.51.100.1, 192.0.2.7, " .. table.concat(list, ", ")}),
              "192.0.2.7 http a")
        equal(answers(with("--forwarded", "forwarded"), {"Forwarded: for=192.0.2.7, " .. table.concat(for_list, ", ")}), "192.0.2.7 http a")
        equal(answers(with("--forwarded", "x-forwarded"), {"X-Forwarded-For: " .. table.concat(list, ", ")}), "10.0.1.1 http a")
    end
end)

-- promise: docs/operations.md: Scheme and host come from the element that names the client
test("scheme and host are those that the client's own proxy saw", function()
    local a, b, c = forwarded({"Forwarded: for=198.51.100.1;host=lie;proto=http, for=192.0.2.7;host=\"b.example:444\";proto=HTTPS, for=10.0.0.1;host=inner;proto=http"},
                              {"Forwarded: for=192.0.2.7;proto=wss;host=\"b/c\""}, {"Forwarded: for=_a;proto=https;host=b"})
    equal(a, "192.0.2.7 https b.example:444")
    equal(b, "127.0.0.1 http a") -- an invalid host makes the element invalid
    equal(c, "127.0.0.1 https b")
end)

-- promise: docs/operations.md: If `X-Forwarded-Proto` or `X-Forwarded-Host` has one element, that element counts;
-- otherwise the element at the same position from the right as the address.
test("X-Forwarded-Proto and -Host are lists or single texts", function()
    local x <const> = "X-Forwarded-For: 192.0.2.7, 10.0.0.1"
    local a, b, c, d = x_forwarded({x, "X-Forwarded-Proto: https", "X-Forwarded-Host: b"},
                                   {x, "X-Forwarded-Proto: http, https, http", "X-Forwarded-Host: lie, b, inner"},
                                   {x .. ", 10.0.0.2", "X-Forwarded-Proto: https, http"},
                                   {x, "X-Forwarded-Proto: ftp", "X-Forwarded-Host: b c"})
    equal(a, "192.0.2.7 https b")
    equal(b, "192.0.2.7 https b")
    equal(c, "192.0.2.7 http a")
    equal(d, "192.0.2.7 http a")
end)

-- promise: docs/operations.md: The client that was found counts everywhere: in the access log, for `rate`, passwords
-- and `--stats-from`, in `req.peer`
test("the log and the counters know the client", function()
    local path = os.tmpname()
    do
        local server <close> = httpd.start("--access-log", path, "--access-log-format", "$remote_addr $scheme $host $status", "--stats",
                                           "/stats", "--trust-from", "127.0.0.1", "--forwarded", "forwarded")
        local sock <close> = server:connect()
        sock:send(http.request("GET /stats", 'Forwarded: for="[2001:db8::7]";proto=https;host=b'))
        equal(sock:read_reply().status, 403)
        sock:send(http.request("GET /stats"))
        equal(sock:read_reply().status, 200)
        http.ask(server, http.request("GET /", "Forwarded: for=192.0.2.7", "Content-Length: x"))
    end
    local file <close> = assert(io.open(path))
    os.remove(path)
    equal(file:read "a", "2001:db8::7 https b 403\n127.0.0.1 http a 200\n127.0.0.1 http a 400\n")
end)

-- promise: docs/operations.md: `--connections-per-address` then counts the client's requests in progress and open
-- WebSockets, and not the proxy's connections. A request above the limit is answered 503
test("the limit of an address is that of the client, in all workers", function()
    local server <close> = script.start([[
        local task = require "sxe.task"
        return function(req) if req.path == "/wait" then task.sleep(3600) end return "" end]],
        "-w", "2", "--connections-per-address", "2", "--trust-from", "127.0.0.1", "--forwarded", "x-forwarded")
    local socks = {}
    for i = 1, 6 do socks[i] = server:connect() end
    for i = 1, 6 do
        socks[i]:send(http.request("GET /", "X-Forwarded-For: 192.0.2.7"))
        equal(socks[i]:read_reply().status, 200)
    end
    for i = 1, 2 do socks[i]:send(http.request("GET /wait", "X-Forwarded-For: 192.0.2.7")) end
    local refused
    httpd.wait_until(function()
        local sock <close> = server:connect()
        sock:send(http.request("GET /", "X-Forwarded-For: 192.0.2.7"))
        refused = sock:read_reply().status == 503
        return refused
    end, "two requests are under way")
    socks[3]:send(http.request("GET /", "X-Forwarded-For: 192.0.2.8"))
    equal(socks[3]:read_reply().status, 200)
    socks[1]:close() -- its request is over
    httpd.wait_until(function()
        local sock <close> = server:connect()
        sock:send(http.request("GET /", "X-Forwarded-For: 192.0.2.7"))
        return sock:read_reply().status == 200
    end, "a request is over")
end)

-- promise: docs/operations.md: If the peer, or the client of its PROXY header, is trusted
test("the address in a PROXY header must be trusted", function()
    local options <const> = {"--proxy-from", "127.0.0.1", "--trust-from", TRUST, "--forwarded", "forwarded"}
    for header, expected in pairs{["PROXY TCP4 10.0.0.1 127.0.0.1 1 2\r\n"] = "192.0.2.7 http a",
                                  ["PROXY TCP4 192.0.2.9 127.0.0.1 1 2\r\n"] = "192.0.2.9 http a"} do
        local server <close> = script.start(APP, table.unpack(options))
        local sock <close> = server:connect()
        sock:send(header .. http.request("GET /", "Forwarded: for=192.0.2.7"))
        equal(sock:read_reply().body, expected)
    end
end)
