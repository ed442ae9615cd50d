-- SPDX-License-Identifier: MIT
--
-- Ids of requests, by docs/observability.md: one id in the reply, the access log, the log and the script.

local http = require "http"
local httpd = require "httpd"
local script = require "script"

local TRUSTED <const> = {"--request-id", "X-Request-Id", "--trust-from", "127.0.0.1"}

local function id_of(reply)
    return reply.headers["x-request-id"]
end

-- The reply to a request with these fields.
local function ask(server, ...)
    local sock <close> = server:connect()
    sock:send(http.request(...))
    return sock:read_reply()
end

-- Start a server that writes a log in JSON, call f(server), stop it, and return the text of the log.
local function log_of(start, f, ...)
    local path = os.tmpname()
    do
        local server <close> = start("--access-log", path, "--access-log-format", "json", ...)
        f(server)
    end
    local file <close> = assert(io.open(path))
    os.remove(path)
    return file:read "a"
end

local function start_script(text)
    return function(...) return script.start(text, ...) end
end

-- promise: docs/observability.md: Each reply has the id in that header, including refusals and error pages.
test("each reply has an id, also a refusal", function()
    local server <close> = httpd.start("--request-id", "X-Request-Id")
    local first, second = id_of(ask(server, "GET /")), id_of(ask(server, "GET /"))
    check(first:find "^%x+$" and #first == 16, first)
    check(first ~= second, "two requests have one id")
    local refused = ask(server, "GET /", "Content-Length: x")
    equal(refused.status, 400)
    check(#id_of(refused) == 16, id_of(refused))
end)

-- promise: docs/observability.md: Each line of the access log in JSON has it as `request_id`
test("the access log has the id of the reply", function()
    local ids = {}
    local text = log_of(httpd.start, function(server)
        for i = 1, 3 do ids[i] = id_of(ask(server, "GET /" .. i)) end
    end, "--request-id", "X-Request-Id")
    for i, id in ipairs(ids) do
        check(text:find(('"target":"/%d".*"request_id":"%s"'):format(i, id)), text)
    end
end)

local APP <const> = [[
local log = require "sxe.log"
return function(req)
    log.warn("the cache is cold")
    if req.path == "/error" then error "boom" end
    return req.id
end]]

-- promise: docs/observability.md: Each line that the request's handler logs begins with it
test("the script and the log have the id of the reply", function()
    local server <close> = script.start(APP, table.unpack(TRUSTED))
    local reply = ask(server, "GET /", "X-Request-Id: from-proxy-1")
    equal(reply.body, "from-proxy-1")
    equal(id_of(reply), "from-proxy-1")
    check(server.proc:errors():find(" 3 - from-proxy-1 the cache is cold\n", 1, true), server.proc:errors())
    local failed = ask(server, "GET /error", "X-Request-Id: from-proxy-2")
    equal(failed.body, '{"error":"internal","id":"from-proxy-2"}\n')
    check(server.proc:errors():find(" 2 %- from%-proxy%-2 GET /error: .*app.lua:4: boom\n"), server.proc:errors())
end)

-- promise: docs/observability.md: The id is 16 random hexadecimal digits, which the server makes.
test("a client that is not trusted chooses no id", function()
    local server <close> = httpd.start("--request-id", "X-Request-Id", "--trust-from", "192.0.2.1")
    check(#id_of(ask(server, "GET /", "X-Request-Id: mine")) == 16)
end)

-- promise: docs/observability.md: The peer is the one that has connected; with `--proxy-from` this is the proxy, not the client that its PROXY header names.
test("the proxy is trusted, and not the client that it names", function()
    for from, expected in pairs{["127.0.0.1"] = "^from%-proxy$", ["192.0.2.7"] = "^%x+$"} do
        local server <close> = httpd.start("--request-id", "X-Request-Id", "--trust-from", from, "--proxy-from",
                                           "127.0.0.1")
        local sock <close> = server:connect()
        sock:send("PROXY TCP4 192.0.2.7 192.0.2.1 1 2\r\n" .. http.request("GET /", "X-Request-Id: from-proxy"))
        check(id_of(sock:read_reply()):find(expected), from)
    end
end)

-- promise: docs/observability.md: An id of a trusted peer counts if the header occurs once and has 1 to 128 visible
-- characters of ASCII without `"`, `'`, `\`, `<`, `>` and `&`; otherwise the server makes an id.
test("only a harmless id of a trusted peer is taken over", function()
    local server <close> = httpd.start(table.unpack(TRUSTED))
    for _, id in ipairs{"a", ("x"):rep(128), "Root=1-67891233-abcdef012345678912345678"} do
        equal(id_of(ask(server, "GET /", "X-Request-Id: " .. id)), id)
    end
    for _, id in ipairs{"", ("x"):rep(129), "a b", 'a"b', "a'b", "a\\b", "a<b", "a>b", "a&b", "\xc3\xa9"} do
        local made = id_of(ask(server, "GET /", "X-Request-Id: " .. id))
        check(made:find "^%x+$" and #made == 16, made)
    end
    check(#id_of(ask(server, "GET /", "X-Request-Id: a", "X-Request-Id: b")) == 16)
end)

-- promise: docs/observability.md: If a handler itself adds a header of that name, it stays as it is.
test("a script's own header stays", function()
    local text = log_of(start_script[[return function(_, res) res.headers["X-Request-Id"] = "mine" return "" end]],
                        function(server) equal(id_of(ask(server, "GET /")), "mine") end, table.unpack(TRUSTED))
    check(text:find '"request_id":"%x+"}\n', text)
end)
