-- SPDX-License-Identifier: MIT
--
-- The JSON of every kind of run is valid by its JSON schema.

local json = require "json-text"
local json_schema = require "json-schema"

local page = "docs/load-generator.schema.json"
local has_peer = os.execute("python3 -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null") == true
if not has_peer then
    print("skipped: the schema by another validator, because python3's jsonschema is not installed")
end

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read("a")
end

local function write(path, text)
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
end

local schema = json_schema.load(read(page))

-- The verdicts of Python's jsonschema about files: "good" or "bad", one line for each file.
local function ask_peer(paths)
    local python <close> = wire.spawn{"/usr/bin/env", "python3", "-W", "ignore", "-c", [[
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    print("good" if validator.is_valid(json.load(open(path))) else "bad")]], page, table.unpack(paths)}
    local output = python:output()
    equal(python:wait(120), 0, python:errors())
    return output
end

local function check_good(text, name)
    local problem = schema:check(json.decode(text), name)
    check(not problem, ("%s in %s"):format(problem, text:sub(1, 3000)))
    problem = schema:check(json.decode(text))
    check(not problem, problem)
end

local function check_lines(text)
    local lines = 0
    for line in text:gmatch("[^\n]+") do
        check_good(line, json.decode(line).type == "second" and "second" or "last")
        lines = lines + 1
    end
    check(lines > 0 and json.decode(text:match("[^\n]+\n$")).type == "result", text)
end

local function serve(...)
    local port = wire.free_port()
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port), ...}
    proc:line(20)
    return proc, "http://127.0.0.1:" .. port .. "/"
end

local outputs = {}

-- A run with --json and --jsonl. If the first word is "kill", the run is interrupted after a while.
local function run(...)
    local path, lines = os.tmpname(), os.tmpname()
    local words = {...}
    local is_killed = words[1] == "kill" and table.remove(words, 1)
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-q", "--timeout", "60", "--drain", "60", "--json", path,
                                    "--jsonl", lines, table.unpack(words)}
    if is_killed then
        proc:line(60)
        proc:line(60)
        wire.sleep(0.2)
        proc:signal("INT")
    end
    proc:output()
    proc:wait(600)
    local text = read(path)
    check(text ~= "", proc:errors())
    check_good(text, "run")
    check_lines(read(lines))
    os.remove(lines)
    outputs[#outputs + 1] = path
    return path, json.decode(text)
end

-- promise: docs/load-generator.md: A run, and each line of `--jsonl`, conforms to
-- [load-generator.schema.json](load-generator.schema.json), a JSON schema (draft 2020-12) that has every name.
test("every kind of run writes JSON that the schema accepts", function()
    local server <close>, url = serve()
    local _, found = run("-c", "4", "--requests", "2000", url)
    check(found.total.rate > 0 and found.probe == nil)
    run("-c", "2", "-n", "5", url, url .. "other")
    run("-c", "8", "-R", "300", "-d", "1.2", "--warmup", "0.1", "--trials", "2", "--probe", "50", "--fanout", "10",
        "--threshold", "p99<1s", "--threshold", "rate>1M", "--threshold", "errors<1%", url)
    run("-c", "1", "-R", "100k", "-d", "0.3", "--open", "-t", "1", url)
    run("-c", "2", "-R", "100:300", "-d", "0.5", "--deadline", "1ms", "--arrivals", "fixed", url)
    run("-c", "2", "--stages", "200:0.2,200:0,0:0.1", "--threshold", "stage1.p50<1s", url)
    _, found = run("-c", "2", "--requests", "20", "--expect-status", "404", url)
    equal(found.total.accounts.first_bad_status, 200)
    run("-c", "2", "-d", "0.2", "--think", "10ms", "--aa", url)
    run("-c", "4", "-d", "0.3", "-R", "20k", "--find", "p50<100ms", url)
    run("-c", "4", "-d", "0.2", "-R", "1k", "--find", "p50<1us", url)
    run("-c", "4", "-d", "1", "--warmup", "auto", url)
    run("-c", "4", "-R", "100", "-d", "0.3", "--shard", "1/2", "--start-at", "+1", url)
    _, found = run("kill", "-c", "4", "-d", "3600", url)
    equal(found.is_interrupted, true)
    check(server)
end)

test("a run without a server, and one with bad replies, write JSON that the schema accepts", function()
    run("-p", tostring(wire.free_port()), "-c", "2", "-n", "1")
    local listener <close> = wire.listen("127.0.0.1", 0)
    local path, lines = os.tmpname(), os.tmpname()
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-q", "-p", tostring(listener:port()), "-c", "1",
                                    "-n", "1", "--timeout", "60", "--json", path, "--jsonl", lines}
    local sock <close> = listener:accept(60)
    sock:recv_until("\r\n\r\n")
    sock:send("rub\tbish\r\n\r\n")
    proc:output()
    equal(proc:wait(120), 1)
    check_good(read(path), "run")
    check(json.decode(read(path)).total.accounts.first_bad_reply.why ~= "")
    check_lines(read(lines))
    outputs[#outputs + 1] = path
    os.remove(lines)
end)

test("comparisons, unix sockets, scripts and replays write JSON that the schema accepts", function()
    local port = wire.free_port()
    local command = wire.program("sxe-httpd") .. " -p " .. port
    run("-c", "2", "-d", "0.05", "--trials", "6", "--server-cmd", command, "--baseline-cmd", command,
        "http://127.0.0.1:" .. port .. "/")
    local server <close>, url = serve()
    local log = os.tmpname()
    write(log, '127.0.0.1 - - [23/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5\n')
    run("-c", "2", "--replay", log, url)
    write(log, "function check(status) return status == 201 end\n")
    run("-c", "2", "--requests", "20", "-s", log, url)
    write(log, 'return {steps = {{path = "/one"}, {path = "/two"}}}\n')
    run("-c", "2", "-d", "0.2", "--scenario", log, url)
    os.remove(log)
    check(server)
end)

test("merged results are JSON that the schema accepts", function()
    local server <close>, url = serve()
    local a = run("-c", "2", "-d", "0.5", "--threshold", "p50<1s", url)
    local proc <close> = wire.spawn{wire.program("sxe-http"), "merge", a, "-q"}
    check_good(proc:output(), "run")
    check(server)
end)

local function copy(value)
    local made = json.decode(json.kind(value) == "array" and "[]" or "{}")
    for name, each in pairs(value) do
        made[name] = type(each) == "table" and each ~= json.null and copy(each) or each
    end
    return made
end

local function encode(value)
    local parts = {}
    if json.kind(value) == "object" then
        for name, each in pairs(value) do
            parts[#parts + 1] = ("%s:%s"):format(encode(name), encode(each))
        end
        return "{" .. table.concat(parts, ",") .. "}"
    elseif json.kind(value) == "array" then
        for i, each in ipairs(value) do
            parts[i] = encode(each)
        end
        return "[" .. table.concat(parts, ",") .. "]"
    elseif type(value) == "string" then
        return '"' .. value:gsub('[%c"\\]', function(byte) return ("\\u%04x"):format(byte:byte()) end) .. '"'
    end
    return tostring(value)
end

-- Functions that each make a valid result invalid.
local wrongs = {
    function(run_) run_.news = 1 end,
    function(run_) run_.plan.news = "x" end,
    function(run_) run_.total.accounts.ends.teapot = 0 end,
    function(run_) run_.trials[1].probe = {} end,
    function(run_) run_.total.response.p75 = 1 end,
    function(run_) run_.total = nil end,
    function(run_) run_.plan.model = nil end,
    function(run_) run_.plan.model = "half open" end,
    function(run_) run_.status = 7 end,
    function(run_) run_.status = "0" end,
    function(run_) run_.sxe_http = 2 end,
    function(run_) run_.started_at = "yesterday" end,
    function(run_) run_.is_interrupted = json.null end,
    function(run_) run_.total.accounts.sent = -1 end,
    function(run_) run_.total.accounts.sent = 1.5 end,
    function(run_) run_.total.response.histogram = json.decode("[[1, 2]]") end,
    function(run_) run_.total.response.histogram = json.decode("[[1, 2, 3, 4]]") end,
    function(run_) run_.total.response.histogram = json.decode("[]") end,
    function(run_) run_.total.response.at_least = json.decode('["p99", "p99"]') end,
    function(run_) run_.trials = json.decode("[]") end,
    function(run_) run_.trials = run_.trials[1] end,
    function(run_) run_.fingerprint.kernel = 6 end,
    function(run_) run_.plan.port = 65536 end,
}

test("the schema refuses each invalid result", function()
    local server <close>, url = serve()
    local path, good = run("-c", "2", "--requests", "500", url)
    local paths = {path}
    for i, spoil in ipairs(wrongs) do
        local bad = copy(good)
        spoil(bad)
        check(schema:check(bad), "the schema has nothing against change " .. i)
        paths[#paths + 1] = os.tmpname()
        write(paths[#paths], encode(bad))
    end
    for _, line in ipairs{'{"type": "second"}', '{"type": "minute"}', "[]", "null", "1"} do
        check(schema:check(json.decode(line)), line)
    end
    check(not pcall(json_schema.load, '{"type": "object", "propertyNames": {}}'), "a word that is not known")
    if has_peer then
        equal(ask_peer(paths), "good\n" .. ("bad\n"):rep(#wrongs))
    end
    for i = 2, #paths do
        os.remove(paths[i])
    end
    check(server)
end)

test("Python's jsonschema agrees", function()
    if has_peer then
        equal(ask_peer(outputs), ("good\n"):rep(#outputs))
    end
    for _, path in ipairs(outputs) do
        os.remove(path)
    end
end)
