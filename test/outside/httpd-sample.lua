-- SPDX-License-Identifier: MIT
--
-- A part of the requests in the access log, by docs/observability.md.

local http = require "http"
local script = require "script"

local APP <const> = [[
return function(req)
    if req.path == "/fail" then return 503 end
    return ""
end]]

-- The targets in the access log of a server with these options, after each of the requests, which are lists for
-- http.request; and the log's text.
local function logged(requests, ...)
    local path = os.tmpname()
    do
        local server <close> = script.start(APP, "--access-log", path, "--access-log-format", "json", "--trust-from",
                                            "127.0.0.1", ...)
        local sock <close> = server:connect()
        for _, request in ipairs(requests) do
            sock:send(http.request(table.unpack(request)))
            sock:read_reply()
        end
    end
    local file <close> = assert(io.open(path))
    os.remove(path)
    local text, targets = file:read "a", {}
    for target in text:gmatch '"target":"([^"]+)"' do targets[#targets + 1] = target end
    return targets, text
end

local function traced(i, digits)
    return {"GET /" .. i, "traceparent: 00-4bf92f3577b34da6a3" .. digits .. "-00f067aa0ba902b7-01"}
end

-- promise: docs/observability.md: With a trace id the server chooses as OpenTelemetry does: the last 14 digits, as a
-- number, are at least `(1 - PART) * 2^56`.
test("the trace id decides", function()
    local requests, expected = {}, {}
    for i = 1, 200 do
        local bits = (i * 0x9e3779b97f4a7c15) >> 8
        requests[i] = traced(i, ("%014x"):format(bits))
        if bits >= 3 << 54 then expected[#expected + 1] = "/" .. i end
    end
    local targets = logged(requests, "--trace", "--access-log-sample", "0.25")
    equal(table.concat(targets, " "), table.concat(expected, " "))
    check(#targets > 20 and #targets < 80, #targets)
end)

-- promise: docs/observability.md: So all servers with the same PART log the same requests
test("two servers choose the same ids", function()
    local requests = {}
    for i = 1, 200 do requests[i] = {"GET /" .. i, "X-Request-Id: request-" .. i} end
    local first = logged(requests, "--request-id", "X-Request-Id", "--access-log-sample", "0.5")
    local second = logged(requests, "--request-id", "X-Request-Id", "--access-log-sample", "0.5")
    equal(table.concat(first, " "), table.concat(second, " "))
    check(#first > 60 and #first < 140, #first)
end)

-- promise: docs/observability.md: each line of JSON has `sample_rate`, which is PART, or 1 for a request that is
-- always logged
test("errors are always logged, and weigh once", function()
    local targets, text = logged({{"GET /"}, {"GET /fail"}}, "--access-log-sample", "0")
    equal(table.concat(targets, " "), "/fail")
    check(text:find('"sample_rate":1}', 1, true), text)
    targets, text = logged({{"GET /"}, {"GET /fail"}}, "--access-log-sample", "1")
    equal(table.concat(targets, " "), "/ /fail")
    targets, text = logged({traced(1, "ffffffffffffff")}, "--trace", "--access-log-sample", "0.1")
    check(#targets == 1 and text:find('"sample_rate":0.1}', 1, true), text)
end)
