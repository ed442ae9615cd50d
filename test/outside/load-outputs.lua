-- SPDX-License-Identifier: MIT
--
-- The outputs of sxe-http for continuous integration: JUnit, Markdown, annotations; and lines and metrics during a run.

local cli = require "cli"
local json = require "json-text"
local junit = require "junit"
local openmetrics = require "openmetrics"

local function serve()
    local port = wire.free_port()
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    proc:line(20)
    return proc, "http://127.0.0.1:" .. port .. "/"
end

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read("a")
end

-- A short run. It may be suspect, because the machine may be busy.
local function run(url, ...)
    return cli.run("sxe-http", "-q", "-c", "2", "--requests", "400", url, ...)
end

local function run_in(env, url, ...)
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-q", "-c", "2", "--requests", "400", url,
                                    env = env, ...}
    local output = proc:output()
    return {status = proc:wait(20), output = output, errors = proc:errors()}
end

-- promise: docs/load-generator.md: XML in the format of JUnit, with a test case for each row. A missed condition is a
-- `failure`, a run without a valid result is an `error`, and a figure that cannot be judged is `skipped`; the message
-- is the sentence.
test("each row of the report is a test case of the JUnit file", function()
    local server <close>, url = serve()
    local before = os.tmpname()
    run(url, "--json", before)
    local ran = run(url, "--threshold", "p50<0.001us", "--threshold", "errors<1%", "--baseline", before,
                    "--junit", "-")
    local cases = junit.check(ran.output)
    equal(cases["run: the load was sent and answered well"].outcome, "passed")
    equal(cases["threshold: errors<1%"].outcome, "passed")
    equal(cases["threshold: p50<0.001us"].outcome, "failure")
    check(cases["threshold: p50<0.001us"].message:find("^the figure is [%d.]+ [um]s$"), ran.output)
    equal(cases["comparison: rate a second"].outcome, "skipped")
    check(cases["client: the client kept up"].outcome == "passed" or ran.status == 4, ran.output)
    os.remove(before)
    check(server)
end)

test("a run without a result is an error, and foreign text is escaped", function()
    local server <close>, url = serve()
    local cases = junit.check(run(url .. "none?a&b'c", "--expect-status", "404", "--junit", "-").output)
    equal(cases["run: the load was sent and answered well"].outcome, "error")
    check(cases["run: the load was sent and answered well"].message:find(
          "400 of 400 requests failed: bad status 400. No request was answered well.", 1, true))
    check(server)
end)

-- promise: docs/load-generator.md: An existing file is replaced, but the file that `GITHUB_STEP_SUMMARY` names is
-- appended to, because all commands of a step share it.
test("GITHUB_STEP_SUMMARY is appended to, another file is overwritten", function()
    local server <close>, url = serve()
    local path = os.tmpname()
    run(url, "--markdown", path)
    run_in({GITHUB_STEP_SUMMARY = path}, url, "--markdown", path)
    local _, times = read(path):gsub("## sxe%-http: GET", "")
    equal(times, 2)
    run(url, "--markdown", path)
    _, times = read(path):gsub("## sxe%-http: GET", "")
    equal(times, 1)
    os.remove(path)
    check(server)
end)

-- The number of cells in a row of a table; an escaped "|" is part of a cell.
local function cells(line)
    return select(2, line:gsub("\\|", ""):gsub("|", "")) - 1
end

-- promise: docs/load-generator.md: Texts are escaped, so that they are shown as they are.
test("a text with Markdown's special characters does not break a table", function()
    local server <close>, url = serve()
    local text = run(url .. "a*b_c&d~$", "--threshold", "errors<1%", "--markdown", "-").output
    check(text:find([[/a\*b\_c&#38;d\~\$]], 1, true), text)
    local columns
    for line in text:gmatch("[^\n]*") do
        if line:sub(1, 1) ~= "|" then
            columns = nil
        else
            columns = columns or cells(line)
            equal(cells(line), columns, line)
        end
    end
    check(server)
end)

-- promise: docs/load-generator.md: The lines go to standard output, after the report, or to standard error if an
-- output goes to standard output.
test("annotations are lines after the report, and never inside JSON or Markdown", function()
    local server <close>, url = serve()
    local line = "::error title=sxe-http%3A Threshold missed::errors>50%25: the figure is 0 %25\n"
    local ran = run(url, "--threshold", "errors>50%", "--annotate")
    check(ran.output:find("\ntime for all .*" .. line:gsub("%p", "%%%0")), ran.output)
    ran = run(url, "--threshold", "errors>50%", "--annotate", "--csv", "-")
    check(not ran.output:find("::error", 1, true), ran.output)
    check(ran.errors:find(line, 1, true), ran.errors)
    check(server)
end)

-- promise: docs/load-generator.md: If `GITHUB_ACTIONS` is `true`, they are written without the option.
test("a step of a workflow has annotations by default", function()
    local server <close>, url = serve()
    for value, expected in pairs{["true"] = true, ["false"] = false, [""] = false} do
        local ran = run_in({GITHUB_ACTIONS = value}, url, "--threshold", "errors>50%")
        equal(ran.output:find("::error", 1, true) ~= nil, expected, value)
    end
    check(server)
end)

-- promise: docs/load-generator.md: merge has all three outputs as well.
test("a merged result has JUnit, Markdown and annotations, too", function()
    local server <close>, url = serve()
    local path = os.tmpname()
    run(url, "--json", path)
    local function merge(...)
        return cli.run("sxe-http", "merge", path, "-q", "--threshold", "errors>50%", ...)
    end
    equal(junit.check(merge("--junit", "-").output)["threshold: errors>50%"].outcome, "failure")
    check(merge("--markdown", "-").output:find("| threshold: errors>50% | **missed** |", 1, true) == nil)
    check(merge("--markdown", "-").output:find("| threshold: errors&#62;50% | **missed** |", 1, true))
    check(merge("--annotate").errors:find("::error title=sxe-http%3A Threshold missed::errors>50%25: ", 1, true))
    os.remove(path)
    check(server)
end)

-- ---- Lines and metrics during a run ----

-- promise: docs/load-generator.md: The lines of a trial add up to its accounts: the last line covers the remaining
-- part of a second.
test("the lines of --jsonl add up to the report", function()
    local server <close>, url = serve()
    local ran = cli.run("sxe-http", "-q", "-c", "4", "-t", "2", "-R", "300", "-d", "1.5", "--timeout", "60",
                        "--trials", "2", "--jsonl", "-", url)
    local sums, result, last = {}, nil, 0
    for text in ran.output:gmatch("[^\n]+") do
        local line = json.decode(text)
        if line.type == "second" then
            equal(line.missing, 0)
            check(line.trial == last or line.trial == last + 1, text)
            last = line.trial
            for _, name in ipairs{"offered", "sent", "ok", "bytes_sent", "bytes_received"} do
                sums[name] = (sums[name] or 0) + line[name]
            end
        else
            equal(line.type, "result")
            check(not result, "one result")
            result = line
        end
    end
    equal(last, 2)
    for name, sum in pairs(sums) do
        equal(sum, result[name], name)
    end
    equal(result.status, ran.status)
    check(server)
end)

-- promise: docs/load-generator.md: If a line cannot be written, standard error says so, the run continues without
-- further lines, and its exit status is 1.
test("a full disk loses lines, and the run goes on", function()
    local server <close>, url = serve()
    local ran = run(url, "--jsonl", "/dev/full")
    equal(ran.status, 1)
    check(ran.errors:find("--jsonl /dev/full could not be written: No space left on device", 1, true),
          ran.errors)
    check(ran.output:find("\nrequests  400  ok 400", 1, true), ran.output)
    check(server)
end)

-- Start a run that lasts until a signal; returns the process and the port of its metrics.
local function run_served(url, ...)
    local words = {wire.program("sxe-http"), "-c", "4", "-R", "300", "--timeout", "60", "--drain", "60",
                   "--metrics", "0", url, ...}
    if not table.concat(words, " "):find(" -d ", 1, true) then
        table.move({"-d", "3600"}, 1, 2, #words + 1, words)
    end
    local proc = wire.spawn(words)
    local port
    repeat
        port = proc:errors():match("metrics   http://127%.0%.0%.1:(%d+)/metrics\n")
        wire.sleep(port and 0 or 0.02)
    until port
    return proc, tonumber(port)
end

local function scrape(port)
    local sock <close> = wire.connect("127.0.0.1", port)
    sock:send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    local text = sock:recv_all()
    check(text:find("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n", 1, true),
          text)
    return text:match("\r\n\r\n(.*)")
end

-- Scrape the metrics until is_there() accepts the family `name`.
local function scrape_until(port, name, is_there)
    local families
    repeat
        wire.sleep(0.1)
        families = openmetrics.parse(scrape(port))
    until is_there(families[name])
    return families
end

local function stop(proc)
    proc:signal("INT")
    proc:output()
    return proc:wait(120)
end

-- promise: docs/load-generator.md: --metrics [ADDR:]PORT serves the figures of the last second at /metrics, in the
-- format OpenMetrics 1.0.0, for Prometheus and other programs that read it.
test("an OpenMetrics parser accepts the metrics, and counters never fall", function()
    local server <close>, url = serve()
    local proc <close>, port = run_served(url, "-t", "2")
    local first = scrape_until(port, "sxe_http_requests_ended", function(family)
        return family.samples['sxe_http_requests_ended_total{account="ok"}'] > 100
    end)
    local second = scrape_until(port, "sxe_http_requests_sent", function(family)
        return family.samples.sxe_http_requests_sent_total
               > first.sxe_http_requests_sent.samples.sxe_http_requests_sent_total
    end)
    openmetrics.check_later(first, second)
    equal(second.sxe_http_connections_open.samples.sxe_http_connections_open, 4)
    equal(second.sxe_http_workers.samples.sxe_http_workers, 2)
    check(second.sxe_http_replies.samples['sxe_http_replies_total{class="2xx"}'] > 100)
    equal(second.sxe_http_response_seconds.type, "histogram")
    stop(proc)
    check(server)
end)

local has_client = os.execute("python3 -c 'import prometheus_client' 2>/dev/null") == true
if not has_client then
    print("skipped: Prometheus' own parser, because python3's prometheus_client is not installed")
end

-- promise: docs/load-generator.md: Counters count from the beginning of the command, over all trials and
--   with the warm-up.
test("counters do not fall from trial to trial, nor in a search", function()
    local server <close>, url = serve()
    for _, options in ipairs{{"--trials", "200", "-d", "1.2"}, {"--find", "p50<1000s", "-d", "2"}} do
        local proc <close>, port = run_served(url, table.unpack(options))
        local before = scrape_until(port, "sxe_http_requests_sent", function(family)
            return family.samples.sxe_http_requests_sent_total > 0
        end)
        local later = scrape_until(port, "sxe_http_trial", function(family)
            return options[1] == "--find" or family.samples.sxe_http_trial >= 3
        end)
        openmetrics.check_later(before, later)
        stop(proc)
    end
    check(server)
end)

test("Python's prometheus_client accepts the metrics, too", function()
    if not has_client then
        return
    end
    local server <close>, url = serve()
    local proc <close>, port = run_served(url)
    local text = scrape(port)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local python <close> = wire.spawn{"/usr/bin/env", "python3", "-c", [[
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
print(len(list(text_string_to_metric_families(open(sys.argv[1]).read()))))]], path}
    check(tonumber(python:output()) > 15, python:errors())
    os.remove(path)
    stop(proc)
    check(server)
end)

-- promise: docs/load-generator.md: A path, or `@name`, is a unix socket.
test("a unix socket is served, and its file is removed", function()
    local server <close>, url = serve()
    local path = os.tmpname()
    os.remove(path)
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-c", "1", "-R", "100", "-d", "3600", "--metrics", path,
                                    url}
    repeat
        wire.sleep(0.02)
    until proc:errors():find("metrics   " .. path .. "\n", 1, true)
    local sock <close> = wire.connect(path)
    sock:send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    check(sock:recv_all():find("# EOF\n$"))
    stop(proc)
    check(not io.open(path), path .. " is still there")
    check(server)
end)

-- promise: docs/load-generator.md: No client of this address can delay the run. There are at most 8 connections; each
-- has 5 seconds, 4 KB for its request and one reply. Together they get 300 system calls a second of the coordinating
-- process; further calls wait.
test("silent, endless and many scrapers do not delay the run, and a good one is served", function()
    local server <close>, url = serve()
    local proc <close>, port = run_served(url)
    local socks = {}
    for i = 1, 20 do
        socks[i] = wire.connect("127.0.0.1", port)
        if i % 2 == 0 then
            pcall(socks[i].send, socks[i], "GET /metrics HTTP/1.1\r\nA: " .. ("b"):rep(i % 4 == 0 and 10 or 9000))
        end
    end
    check(scrape(port):find("# EOF\n$"))
    local status = stop(proc)
    check(status == 130, status)
    for _, sock in ipairs(socks) do
        sock:close()
    end
    check(server)
end)

-- ---- The parsers that these tests use ----

test("the parsers of these tests refuse malformed input", function()
    local family = "# TYPE a counter\n# HELP a b\na_total 1\n"
    check(pcall(openmetrics.parse, family .. "# EOF\n"))
    local times = '# TYPE t_seconds histogram\n# UNIT t_seconds seconds\nt_seconds_bucket{le="0.1"} 1\n'
    local rest = 't_seconds_bucket{le="+Inf"} 2\nt_seconds_count 2\nt_seconds_sum 0.3\n# EOF\n'
    check(pcall(openmetrics.parse, times .. rest))
    for _, text in ipairs{
        family, "# EOF", family .. "# EOF\n\n", family .. family .. "# EOF\n", family .. "a_total 2\n# EOF\n",
        family .. "b_total 2\n# EOF\n", family .. "a 2\n# EOF\n", "# TYPE a counter\na_total -1\n# EOF\n",
        "# TYPE a counter\na_total x\n# EOF\n", "# TYPE a counter\n# EOF\n", "a_total 1\n# EOF\n",
        "# TYPE a gauge\n# UNIT a bytes\na 1\n# EOF\n", '# TYPE a counter\na_total{b="c} 1\n# EOF\n',
        '# TYPE a counter\na_total{b="\\x"} 1\n# EOF\n', "# TYPE a info\na_info 2\n# EOF\n",
        times .. "t_seconds_count 1\nt_seconds_sum 1\n# EOF\n",
        times .. 't_seconds_bucket{le="0.05"} 2\n# EOF\n', times .. 't_seconds_bucket{le="+Inf"} 0\n# EOF\n',
        times .. 't_seconds_bucket{le="+Inf"} 2\nt_seconds_count 3\nt_seconds_sum 1\n# EOF\n',
    } do
        check(not pcall(openmetrics.parse, text), text)
    end
    for _, text in ipairs{"", "{", "[1,]", "{\"a\":1,\"a\":2}", "01", "1.", "nil", "\"\\x\"", "\"\n\"", "1 2",
                          "[1 2]"} do
        check(not pcall(json.decode, text), text)
    end
    local xml = '<?xml version="1.0" encoding="UTF-8"?>\n'
    for _, text in ipairs{"<a/>", xml .. "<a>", xml .. "<a></b>", xml .. "<a>&</a>", xml .. "<a>&#1;</a>",
                          xml .. "<a b=\"1\" b=\"2\"/>", xml .. "<a/><b/>", xml .. "<a>\1</a>", xml .. "<a/>"} do
        check(not pcall(junit.check, text), text)
    end
end)

-- promise: docs/load-generator.md: `sxe-http` refuses this before it writes anything.
test("an output never overwrites a file that is read", function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local texts = {
        ["s.lua"] = "return {data = 'rows.csv', steps = {{path = '/{v}'}}}",
        ["w.lua"] = "function request() return wrk.format() end",
        ["rows.csv"] = "v\n1\n", ["body"] = "hello", ["a.json"] = "{}",
    }
    for name, text in pairs(texts) do
        local file <close> = assert(io.open(folder .. "/" .. name, "w"))
        file:write(text)
    end
    assert(os.execute("cd " .. folder .. " && ln -s . here && ln body link"))
    local function refused(read_option, name, output, ...)
        local ran = cli.run("sxe-http", "-q", "--requests", "1", "http://127.0.0.1:1/", read_option, name, "--json", output,
                            ...)
        equal(ran.status, 2, name)
        check(ran.errors:find("would overwrite", 1, true), ran.errors)
    end
    local at = folder .. "/"
    refused("--scenario", at .. "s.lua", at .. "here/s.lua")
    refused("--scenario", at .. "s.lua", at .. "here/rows.csv")
    refused("--script", at .. "w.lua", at .. "w.lua")
    refused("--replay", at .. "rows.csv", at .. "rows.csv")
    refused("--body", "@" .. at .. "body", at .. "link")
    refused("--expect-body", "@" .. at .. "body", at .. "here/link")
    refused("--request-file", at .. "body", at .. "body")
    local ran = cli.run("sxe-http", "merge", at .. "a.json", "--json", at .. "here/a.json")
    equal(ran.status, 2)
    check(ran.errors:find("would overwrite", 1, true), ran.errors)
    for name, text in pairs(texts) do equal(read(at .. name), text) end
    assert(os.execute("rm -r " .. folder))
end)
