-- SPDX-License-Identifier: MIT
--
-- What: load generators, ours and those of other projects, each of which puts the same load on a
-- server.
-- Place: load.lua runs the command line of command() and gives its output to read().
--
-- A client  {name, can(load) -> true | nil, why; command(load, server, seconds, files) -> words;
--            read(output, files, load) -> result | nil, why; warms_up; seconds_of(load, seconds)
--            if its runs need other than these seconds; program; package: its Debian package, if
--            that has another name}
-- result    {rate = good replies a second, seconds, count, bytes, connects = a second, p50, p99 in
--            µs, curve = {{percentile, µs}, ...}}: those of the fields that the client knows;
--            sxe-http also p999 and slowest
-- load      described in rows.lua; batch = 1 if limit-client itself is measured; body_length: of
--           replies whose bytes are not known; rate: requests a second, in an open loop

local cjson = require "cjson"

local clients = {}

local WARM_UP = 0.3 -- as a share of the measured time
local BATCH = 64 -- replies that limit-client reads before it asks again, unless it is measured
local EXACT_BODY = 4096 -- bytes; of a longer body only Content-Length is checked
local SHOWN = {0, 1, 5, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99}
local BEYOND = 10 -- samples that a percentile must have beyond it

local function text_of(number)
    return ("%.3f"):format(number)
end

local function url_of(load, server)
    return ("%s://127.0.0.1:%d%s"):format(load.tls and "https" or "http", server.port,
                                         load.target or "/")
end

local function append(words, ...)
    for _, word in ipairs{...} do
        words[#words + 1] = word
    end
end

local function append_headers(words, load)
    for _, header in ipairs(load.headers or {}) do
        append(words, "-H", header)
    end
    if load.fresh then
        append(words, "-H", "Connection: close")
    end
end

-- ---- sxe-http ----

-- The points of a latency curve, from a histogram {{low, high, count}, ...} in order.
local function curve_of(histogram, total)
    local curve, seen, i = {}, 0, 0
    for _, percentile in ipairs(SHOWN) do
        if total * (1 - percentile / 100) < BEYOND then
            break
        end
        while i < #histogram and (i == 0 or seen < total * percentile / 100) do
            i = i + 1
            seen = seen + histogram[i][3]
        end
        curve[#curve + 1] = {percentile, histogram[i][2]}
    end
    return curve
end

local function known(value)
    return type(value) == "number" and value or nil
end

-- The kinds of failed requests with their counts, as a text; nil: none failed.
local function bad_ends(ends)
    local list = {}
    for name, count in pairs(ends) do
        if name ~= "ok" and count > 0 then
            list[#list + 1] = ("%d %s"):format(count, (name:gsub("_", " ")))
        end
    end
    table.sort(list)
    return #list > 0 and table.concat(list, ", ") or nil
end

local function read_sxe_http(_, files, load)
    local file = io.open(files .. "sxe-http.json")
    if not file then
        return nil, "no result"
    end
    local total = cjson.decode(file:read("a")).total
    file:close()
    os.remove(files .. "sxe-http.json")
    local bad = bad_ends(total.accounts.ends)
    if bad or total.sockets.opened < total.sockets.wanted then
        return nil, bad or ("%d of %d sockets open"):format(total.sockets.opened,
                                                            total.sockets.wanted)
    end
    local is_whole = load.rate or load.fresh and total.connect.count > 0
    local times = is_whole and total.response or total.service
    return {rate = total.rate, seconds = total.seconds, count = total.rate * total.seconds,
            bytes = total.accounts.bytes_received, p50 = known(times.p50), p99 = known(times.p99),
            p999 = known(times["p99.9"]), slowest = known(times.max),
            connects = load.fresh and total.rate or total.sockets.opened / total.sockets.seconds,
            curve = curve_of(times.histogram, times.count)}
end

local function write(path, bytes)
    local file <close> = assert(io.open(path, "wb"))
    file:write(bytes)
    return path
end

local function command_sxe_http(load, server, seconds, files)
    -- Runs follow each other: --abort leaves no port in TIME_WAIT.
    local words = {wire.program("sxe-http"), "-q", "--abort", "-c", load.connections, "--json",
                   files .. "sxe-http.json", "--expect-status", load.status or "200"}
    if load.queries then
        append(words, "-n", load.queries)
    else
        append(words, "-d", text_of(seconds), "--warmup",
               text_of(load.warmup or WARM_UP * seconds))
    end
    if (load.depth or 1) > 1 then
        append(words, "--pipeline", load.depth)
    end
    if load.rate then
        append(words, "-R", ("%.0f"):format(load.rate))
    end
    if load.workers then
        append(words, "-t", load.workers)
    end
    if load.sources then
        append(words, "--source", load.sources)
    end
    if load.post then
        append(words, "-b", "@" .. write(files .. "posted", load.post))
    end
    if type(load.body) == "string" and #load.body <= EXACT_BODY then
        append(words, "--expect-body", "@" .. write(files .. "body", load.body))
    elseif type(load.body) == "string" then
        append(words, "--expect-header", ("Content-Length: %d"):format(#load.body))
    end
    if load.body_length then
        append(words, "--expect-header", ("Content-Length: %d"):format(load.body_length))
    end
    if load.tls then
        append(words, "--insecure")
    end
    append_headers(words, load)
    append(words, url_of(load, server))
    return words
end

-- ---- limit-client, and connect-client, which makes a connection for each request ----

local function command_limit(program, load, server, seconds)
    local words = {wire.program(program), "-p", server.port, "-c", load.connections, "-u",
                   load.target or "/"}
    if load.queries then
        append(words, "-n", load.queries, "-w", 0)
    else
        append(words, "-d", text_of(seconds), "-w", text_of(load.warmup or WARM_UP * seconds))
    end
    return words
end

local function command_limit_client(load, server, seconds)
    local words = command_limit("bench/limit-client", load, server, seconds)
    append(words, "-P", load.depth or 1, "-b", load.batch or BATCH)
    return words
end

local function command_connect_client(load, server, seconds)
    return command_limit("bench/connect-client", load, server, seconds)
end

-- If load.length, the bytes of a reply, is known, count by the bytes: that is more exact if replies
-- are few.
local function read_limit_client(output, _, load)
    local line = output:match("(%b{})%s*$")
    local result = line and cjson.decode(line)
    if not result or result.requests == 0 then
        return nil, "no result"
    end
    local count = load.length and result.bytes / load.length or result.requests
    return {rate = count / result.seconds, seconds = result.seconds, count = count,
            bytes = result.bytes, connects = load.fresh and result.requests / result.seconds
            or result.connects / result.connect_seconds,
            p50 = result.p50_us, p99 = result.p99_us}
end

-- ---- limit-tls-client ----

local function command_limit_tls(load, server, seconds, files)
    local words = command_limit("bench/limit-tls-client", load, server, seconds)
    append(words, "-b", load.batch or BATCH, "-e", write(files .. "body", load.body))
    if load.fresh then
        append(words, load.tls.resumes and "-r" or "-f")
    end
    return words
end

-- Version and cipher must be those of all peers; all handshakes must be resumed, or none, as the load
-- wants it.
local function read_limit_tls(output, files, load)
    local result, why = read_limit_client(output, files, load)
    if not result then
        return nil, why
    end
    local said = cjson.decode(output:match("(%b{})%s*$"))
    if said.version ~= "TLSv1.3" or said.cipher ~= "TLS_AES_128_GCM_SHA256" then
        return nil, ("it spoke %s, %s"):format(said.version, said.cipher)
    elseif load.fresh and said.resumed ~= (load.tls.resumes and said.handshakes or 0) then
        return nil, ("%d of %d handshakes were resumed"):format(said.resumed, said.handshakes)
    end
    result.resumed = load.fresh and said.resumed / said.handshakes or nil
    return result
end

-- ---- Clients of other projects ----

-- wrk's -d takes whole seconds only, so SIGINT from `timeout` ends it. Its time includes opening
-- the connections. `timeout` is killed when the driver ends, and setpriv then has wrk killed.
local function seconds_of_wrk(load, seconds)
    return math.max(seconds, load.connections > 5000 and 1 or 0.5)
end

local function command_wrk(load, server, seconds)
    local words = {"timeout", "-s", "INT", text_of(seconds_of_wrk(load, seconds)), "setpriv",
                   "--pdeathsig", "KILL", wire.has("wrk"), "-t", 1, "-c", load.connections,
                   "--latency", "-d", "1h"}
    append_headers(words, load)
    append(words, url_of(load, server))
    return words
end

-- 35.00us, 1.20ms, 2.10s
local function us_of(text)
    local number, unit = (text or ""):match("^([%d.]+)(%a+)$")
    return number and tonumber(number) * (({us = 1, ms = 1e3, s = 1e6})[unit] or 1)
end

local function read_wrk(output)
    local rate = tonumber(output:match("Requests/sec:%s+([%d.]+)"))
    local bad = output:match("(Non%-2xx[^\n]*)") or output:match("(Socket errors[^\n]*)")
    local count, time = output:match("(%d+) requests in ([%d.]+%a+)")
    if not rate or bad or tonumber(count) == 0 then
        return nil, bad or "no result"
    end
    return {rate = rate, count = tonumber(count), seconds = us_of(time) / 1e6,
            p50 = us_of(output:match("50%%%s+(%S+)")), p99 = us_of(output:match("99%%%s+(%S+)"))}
end

local function requests_of(load, seconds)
    return math.max(load.connections * 2, math.ceil((load.last_rate or 50000) * seconds))
end

local function command_ab(load, server, seconds)
    return {wire.has("ab"), "-q", "-k", "-c", load.connections, "-n", requests_of(load, seconds),
            url_of(load, server)}
end

local function read_ab(output)
    local rate = tonumber(output:match("Requests per second:%s+([%d.]+)"))
    if not rate or not output:find("Failed requests:%s+0%f[^%d]") then
        return nil, output:match("(Failed requests[^\n]*)") or "no result"
    end
    return {rate = rate, seconds = tonumber(output:match("Time taken for tests:%s+([%d.]+)"))}
end

local function command_h2load(load, server, seconds)
    return {wire.has("h2load"), "--h1", "-t", 1, "-c", load.connections, "-n",
            requests_of(load, seconds), url_of(load, server)}
end

local function read_h2load(output)
    local time, rate = output:match("finished in ([%d.]+m?s), ([%d.]+) req/s")
    if not rate or not output:find(" 0 failed, 0 errored, 0 timeout", 1, true) then
        return nil, output:match("(requests: [^\n]*)") or "no result"
    end
    return {rate = tonumber(rate), seconds = us_of(time) / 1e6}
end

local function command_weighttp(load, server, seconds)
    return {wire.has("weighttp"), "-k", "-t", 1, "-c", load.connections, "-n",
            requests_of(load, seconds), url_of(load, server)}
end

local function read_weighttp(output)
    local rate = tonumber(output:match('"reqs_per_sec": ([%d.]+)'))
    if not rate or not output:find('"fail": 0,', 1, true)
       or not output:find('"errs": 0', 1, true) then
        return nil, "no result, or failures"
    end
    return {rate = rate, seconds = tonumber(output:match('"secs": ([%d.]+)'))}
end

-- ---- All clients ----

local function only_plain(load)
    if load.tls or (load.depth or 1) > 1 or load.fresh or load.queries or load.sources or load.status
       or load.headers or load.post then
        return nil, "no such load"
    end
    return true
end

local function can_wrk(load)
    if (load.depth or 1) > 1 or load.queries or load.sources or (load.workers or 1) > 1
       or load.post or (load.status or "200") ~= "200" then
        return nil, "wrk has no such load"
    end
    return true
end

local function can_limit_client(load)
    if load.tls or load.fresh or load.sources or load.headers or load.post
       or (load.workers or 1) > 1 then
        return nil, "limit-client has no such load"
    end
    return true
end

local function can_connect_client(load)
    return load.fresh and not (load.tls or load.queries) or nil, "connect-client has no such load"
end

local function can_all()
    return true
end

-- good: the exit statuses of a good run. sxe-http's 4 warns that the client may be the bottleneck;
-- that shows in the result, which has the CPU time of both sides.
local list = {
    {name = "sxe-http", command = command_sxe_http, read = read_sxe_http, can = can_all,
     warms_up = true, good = {[0] = true, [4] = true}},
    {name = "limit-client", command = command_limit_client, read = read_limit_client,
     can = can_limit_client, warms_up = true},
    {name = "connect-client", command = command_connect_client, read = read_limit_client,
     can = can_connect_client, warms_up = true},
    {name = "limit-tls-client", command = command_limit_tls, read = read_limit_tls,
     can = function(load) return load.tls and true or nil, "it speaks TLS" end, warms_up = true},
    {name = "wrk", command = command_wrk, read = read_wrk, can = can_wrk, program = "wrk",
     seconds_of = seconds_of_wrk, good = {[124] = true}}, -- timeout(1) ends with this status
    {name = "weighttp", command = command_weighttp, read = read_weighttp, can = only_plain,
     program = "weighttp"},
    {name = "ab", command = command_ab, read = read_ab, can = only_plain, program = "ab",
     package = "apache2-utils"},
    {name = "h2load", command = command_h2load, read = read_h2load, can = only_plain,
     program = "h2load", package = "nghttp2-client"},
}

function clients.find(name)
    for _, client in ipairs(list) do
        if client.name == name then
            return client
        end
    end
    error("no such client: " .. name)
end

function clients.is_installed(client)
    return client.program == nil or wire.has(client.program) ~= nil
end

function clients.names()
    local names = {}
    for i, client in ipairs(list) do
        names[i] = client.name
    end
    return names
end

return clients
