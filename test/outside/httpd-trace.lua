-- SPDX-License-Identifier: MIT
--
-- Traces of W3C Trace Context, by docs/observability.md: in scripts, in the access log, and in requests to other servers.

local http = require "http"
local script = require "script"

local TRACE <const>, PARENT <const> = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
local CAME <const> = "traceparent: 00-" .. TRACE .. "-" .. PARENT .. "-01"

-- GET /forward asks a server at `port`, and replies what that one got. Others reply the trace.
local APP <const> = [[
local client = require "sxe.client"
return function(req)
    local h, q, t = req.headers, req.query, req.trace
    if req.path == "/forward" then
        local options = { url = "http://127.0.0.1:" .. q.port .. "/echo", trace = not q.off, headers = {} }
        if q.own then options.headers.traceparent = q.own end
        return client.request(options).body
    elseif req.path == "/echo" then
        return (h.traceparent or "-") .. " " .. (h.tracestate or "-")
    end
    return t.trace_id .. " " .. (t.parent_id or "-") .. " " .. t.span_id .. " " .. tostring(t.sampled)
end]]

local function start(...)
    return script.start(APP, "--trace", ...)
end

-- The body of the reply to a request with these fields.
local function ask(server, ...)
    local sock <close> = server:connect()
    sock:send(http.request(...))
    return sock:read_reply().body
end

-- promise: docs/observability.md: If a peer of `--trust-from` sends a `traceparent`, the request continues that
-- trace.
test("a trusted peer's trace goes on", function()
    local server <close> = start("--trust-from", "127.0.0.1")
    local trace, parent, span, sampled = ask(server, "GET /", CAME):match "^(%x+) (%x+) (%x+) (%a+)$"
    equal(trace .. parent .. sampled, TRACE .. PARENT .. "true")
    check(#span == 16 and span ~= PARENT, span)
    check(ask(server, "GET /", (CAME:gsub("01$", "00"))):find " false$")
end)

-- promise: docs/observability.md: Without a traceparent, or if it is invalid, occurs twice or comes from another
-- client, the request begins a new trace, which is sampled.
test("another trace begins in all other cases", function()
    local trusting <close> = start("--trust-from", "127.0.0.1")
    local strict <close> = start()
    for _, body in ipairs{ask(trusting, "GET /"), ask(trusting, "GET /", CAME .. "1"), ask(trusting, "GET /", CAME, CAME),
                          ask(strict, "GET /", CAME)} do
        local trace, span = body:match "^(%x+) %- (%x+) true$"
        check(trace and #trace == 32 and #span == 16 and trace ~= TRACE, body)
    end
end)

-- What the specification says of a value, written without a look at the parser.
local function is_valid(value)
    local version, trace, parent, flags, rest = value:match "^([0-9a-f]+)%-([0-9a-f]+)%-([0-9a-f]+)%-([0-9a-f]+)(.*)$"
    return version ~= nil and #version == 2 and version ~= "ff" and #trace == 32 and trace:find "[^0]" ~= nil
        and #parent == 16 and parent:find "[^0]" ~= nil and #flags == 2
        and (rest == "" or (version ~= "00" and rest:sub(1, 1) == "-"))
end

-- promise: docs/observability.md: The server reads traceparent strictly: small hexadecimal digits, no id of zeros,
-- version 00 with exactly 55 bytes. Version ff is invalid; of other versions the server reads the fields of version
-- 00.
test("mutated values are valid where the specification says so", function()
    local server <close> = start("--trust-from", "127.0.0.1")
    local sock <close> = server:connect()
    local letters, valid = "0f-gFx", 0
    local function try(value)
        sock:send(http.request("GET /", "traceparent: " .. value))
        local is_taken = not sock:read_reply().body:find " %- "
        equal(is_taken, is_valid(value), value)
        valid = valid + (is_taken and 1 or 0)
    end
    for _, version in ipairs{"00", "01", "fe", "ff"} do
        local value = version .. CAME:match " 00(.*)"
        for _, more in ipairs{"", "-", "-x", "x", "0"} do try(value .. more) end
        for at = 1, #value do
            local letter = letters:sub(at % #letters + 1, at % #letters + 1)
            try(value:sub(1, at - 1) .. letter .. value:sub(at + 1))
            try(value:sub(1, at - 1) .. value:sub(at + 1))
        end
        try(version .. "-" .. ("0"):rep(32) .. "-" .. PARENT .. "-01")
        try(version .. "-" .. TRACE .. "-" .. ("0"):rep(16) .. "-01")
    end
    check(valid > 50, valid)
end)

-- promise: docs/observability.md: Requests that a handler makes with [`sxe.client`](http-client.md) pass the trace on
test("requests of a handler pass the trace on, unless the script says otherwise", function()
    local server <close> = start("--trust-from", "127.0.0.1")
    local other <close> = script.start(APP)
    local target = "GET /forward?port=" .. other.port
    local sent = ask(server, target, CAME, "tracestate: a=1", "tracestate: b=2")
    local trace, span, state = sent:match "^00%-(%x+)%-(%x+)%-01 (.*)$"
    equal(trace, TRACE)
    check(#span == 16 and span ~= PARENT, span)
    equal(state:gsub(" ", ""), "a=1,b=2")
    equal(ask(server, target .. "&off=1", CAME), "- -")
    equal(ask(server, target .. "&own=x", CAME, "tracestate: a=1"), "x -")
end)

-- promise: docs/observability.md: It passes `tracestate` on unread, up to 512 bytes; a longer one is not passed on.
test("a tracestate has a bound", function()
    local server <close> = start("--trust-from", "127.0.0.1")
    local other <close> = script.start(APP)
    local target = "GET /forward?port=" .. other.port
    for length, expected in pairs{[512] = ("x"):rep(512), [513] = "-"} do
        equal(ask(server, target, CAME, "tracestate: " .. ("x"):rep(length)):match " (.*)$", expected)
    end
end)

-- promise: docs/observability.md: Each line of the access log in JSON has `trace_id`, and `span_id`, the id of this
-- request in the trace.
test("the access log has the ids", function()
    local path = os.tmpname()
    local span
    do
        local server <close> = start("--trust-from", "127.0.0.1", "--access-log", path, "--access-log-format", "json")
        span = ask(server, "GET /", CAME):match "^%x+ %x+ (%x+)"
    end
    local file <close> = assert(io.open(path))
    os.remove(path)
    local text = file:read "a"
    check(text:find(('"trace_id":"%s","span_id":"%s"}\n'):format(TRACE, span), 1, true), text)
end)
