-- SPDX-License-Identifier: MIT
--
-- Where results go: what was judged, for servers of continuous integration.

local cli = require "cli"
local junit = require "junit"

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

-- A run that is soon over; the machine may be too busy for it to be believed.
local function run(url, ...)
    return cli.run("sxe-http", "-q", "-c", "2", "--requests", "400", url, ...)
end

local function run_in(env, url, ...)
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-q", "-c", "2", "--requests", "400", url,
                                    env = env, ...}
    local output = proc:output()
    return {status = proc:wait(20), output = output, errors = proc:errors()}
end

-- promise: docs/load-generator.md: XML as JUnit's, with a test case for each row: what is missed is
--   a `failure`, a run that is no result an `error`, and a figure that cannot be judged is `skipped`;
--   the message is the sentence.
test("each row is a case of JUnit's", function()
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
    check(cases["client: the client kept up"].outcome == (ran.status == 4 and "failure" or "passed"),
          ran.output)
    os.remove(before)
    check(server)
end)

test("a run that is no result is an error, and texts of others are escaped", function()
    local server <close>, url = serve()
    local cases = junit.check(run(url .. "none?a&b'c", "--expect-status", "404", "--junit", "-").output)
    equal(cases["run: the load was sent and answered well"].outcome, "error")
    check(cases["run: the load was sent and answered well"].message:find(
          "400 of 400 requests failed: bad status 400. No request was answered well.", 1, true))
    check(server)
end)

-- promise: docs/load-generator.md: A file is written anew, but the one that `GITHUB_STEP_SUMMARY`
--   names is continued, since it belongs to all steps of a job.
test("the summary of a job is continued, another file is not", function()
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

-- Cells of a row; a "|" that is escaped is in one.
local function cells(line)
    return select(2, line:gsub("\\|", ""):gsub("|", "")) - 1
end

-- promise: docs/load-generator.md: A text is shown as it is, whatever it has in it.
test("no text breaks a table", function()
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

-- promise: docs/load-generator.md: They go to standard output, after the report, or to standard error
--   where an output goes to standard output.
test("annotations are lines behind the report, and never in data", function()
    local server <close>, url = serve()
    local line = "::error title=sxe-http%3A Threshold missed::errors>50%25: the figure is 0 %25\n"
    local ran = run(url, "--threshold", "errors>50%", "--annotate")
    check(ran.output:find("\ntime for all .*" .. line:gsub("%p", "%%%0")), ran.output)
    ran = run(url, "--threshold", "errors>50%", "--annotate", "--csv", "-")
    check(not ran.output:find("::error", 1, true), ran.output)
    check(ran.errors:find(line, 1, true), ran.errors)
    check(server)
end)

-- promise: docs/load-generator.md: Where `GITHUB_ACTIONS` is `true`, they are written without being
--   asked for.
test("a step of a workflow has annotations without being asked", function()
    local server <close>, url = serve()
    for value, expected in pairs{["true"] = true, ["false"] = false, [""] = false} do
        local ran = run_in({GITHUB_ACTIONS = value}, url, "--threshold", "errors>50%")
        equal(ran.output:find("::error", 1, true) ~= nil, expected, value)
    end
    check(server)
end)
