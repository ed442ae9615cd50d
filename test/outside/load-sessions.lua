-- SPDX-License-Identifier: MIT
--
-- Sessions of sxe-http, checked by the server's log: users log in, keep cookies, take values from replies, follow
-- redirects, and read rows of data.

local cli = require "cli"
local script = require "script"

-- The server logs each request: method, target, cookie, body. Some paths have their own reply.
local server <close> = script.start [[
local log, count = {}, 0
local replies = {
    ["/csrf"] = function() count = count + 1 return '<input name="csrf" value="t' .. count .. '">' end,
    ["/cookie"] = function(req, res) res.headers["Set-Cookie"] = "sid=1; Path=/" return "" end,
    ["/secure"] = function(req, res) res.headers["Set-Cookie"] = "sid=1; Path=/; Secure" return "" end,
    ["/json"] = function() return '{"user": {"names": ["a b", "c\\r\\nX-Bad: 1"]}}' end,
    ["/hop"] = function(req, res) res.headers.Location = "end?x=1" return 303 end,
    ["/loop"] = function(req, res) res.headers.Location = "/loop" return 302 end,
    ["/away"] = function(req, res) res.headers.Location = "http://example.com/" return 302 end,
    ["/bad"] = function() return 500 end,
}
return function(req, res)
    if req.path == "/log" then
        local text = table.concat(log, "\n")
        log, count = {}, 0
        return text
    end
    local body = req:body() or ""
    local line = table.concat({req.method, req.path, req.headers.cookie or "-",
                                  req.headers["x-bad"] or "-", body}, " "):gsub("\r?\n", "|")
    log[#log + 1] = line
    local reply = replies[req.path]
    return reply and reply(req, res) or "ok"
end
]]

-- Run a scenario of these steps, with `files` beside it. Returns the result and the server's log.
local function run(text, files, ...)
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    files = files or {}
    files["s.lua"] = text
    for name, content in pairs(files) do
        local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
        file:write(content)
    end
    local words = {"-q", "--timeout", "120", "--scenario", folder .. "/s.lua", "--json",
                   folder .. "/out.json", server.url, ...}
    local ran = cli.run("sxe-http", table.unpack(words))
    local file <close> = io.open(folder .. "/out.json")
    local json = file and file:read "a" or ""
    ran.completed, ran.failed = json:match '"sessions": {"completed": (%d+), "failed": (%d+)}'
    ran.lines = {}
    for line in server:ask("/log"):gmatch "[^\n]+" do
        ran.lines[#ran.lines + 1] = line
    end
    os.execute("rm -r " .. folder)
    return ran
end

local function run_with(words, text, files)
    return run(text, files, table.unpack(words))
end

-- Run with one user and `number` requests.
local function run_one(number, text, files)
    return run_with({"-c", "1", "--requests", tostring(number)}, text, files)
end

-- promise: docs/load-generator.md: Each new session begins without cookies and values, with the next row.
test("a session begins without cookies and values, with the next row", function()
    local ran = run_one(6, [[return {cookies = true, data = "u.csv", steps = {
        {path = "/cookie"}, {path = "/{user}"}, {path = "/last"}}}]],
        {["u.csv"] = "user\nanna\nbob\n"})
    equal(table.concat(ran.lines, "\n"), table.concat({
        "GET /cookie - - ", "GET /anna sid=1 - ", "GET /last sid=1 - ",
        "GET /cookie - - ", "GET /bob sid=1 - ", "GET /last sid=1 - "}, "\n"))
    equal(ran.completed, "2")
    equal(ran.failed, "0")
end)

-- promise: docs/load-generator.md: A reply that is not good, or a missing reply, ends the session. The session counts
-- as failed, and the user begins a new one.
test("a bad reply ends the session", function()
    local ran = run_one(4, 'return {steps = {{path = "/a"}, {path = "/bad"}, {path = "/never"}}}')
    equal(table.concat(ran.lines, "\n"), "GET /a - - \nGET /bad - - \nGET /a - - \nGET /bad - - ")
    equal(ran.completed, "0")
    equal(ran.failed, "2")
    check(ran.status == 1 or ran.status == 4, ran.errors)
end)

-- promise: docs/load-generator.md: If a value is not in the reply, that reply is a failed check.
test("a value that the reply lacks is a failed check", function()
    local ran = run_one(2, 'return {steps = {{path = "/a", take = {x = {json = "$.x"}}}}}')
    check(ran.output:find("failed check 2", 1, true), ran.output)
    check(ran.errors:find("steps[1] (GET /a): take.x: JSON path '$.x'", 1, true), ran.errors)
end)

-- promise: docs/load-generator.md: The first failure is reported on standard error.
test("the first failure is reported with its step", function()
    local ran = run_one(3, 'return {steps = {{path = "/a"}, {path = "/bad", name = "mine"}}}')
    check(ran.errors:find("sessions that failed: 1, the first: steps[2] (mine): bad status", 1, true),
          ran.errors)
end)

-- promise: docs/load-generator.md: Values are escaped, so that no value can end a line, or make a second request
test("a value with line ends cannot make another line or request", function()
    local ran = run_one(4, [[return {steps = {{path = "/json", take = {
        v = {json = "$.user.names[1]"}}}, {path = "/{v}", headers = {["X-Bad"] = "<{v}>"}},
        {path = "/{raw:v}", body = '{"a": "{json:v}"}'}, {path = "/", form = {a = "{v}&"}}}}]])
    equal(table.concat(ran.lines, "\n"), table.concat({
        "GET /json - - ", "GET /c|X-Bad: 1 - <c  X-Bad: 1> ",
        'POST /c|X-Bad: 1 - - {"a": "c\\r\\nX-Bad: 1"}', "POST / - - a=c%0D%0AX-Bad%3A+1%26"}, "\n"))
end)

-- promise: docs/load-generator.md: A `Secure` cookie is never sent, because sessions have no TLS
test("a secure cookie is not sent", function()
    local ran = run_one(2, 'return {cookies = true, steps = {{path = "/secure"}, {path = "/a"}}}')
    equal(ran.lines[2], "GET /a - - ")
end)

-- promise: docs/load-generator.md: Each followed redirect is a good reply, and each hop is another request in the row
-- of its step. The step's checks and values apply to the last reply.
test("a redirect is followed by a request, which is counted", function()
    local ran = run_one(4, [[return {steps = {
        {method = "POST", path = "/hop", body = "x", follow = 1, expect_body = "ok"}}}]])
    equal(table.concat(ran.lines, "\n"),
          "POST /hop - - x\nGET /end - - \nPOST /hop - - x\nGET /end - - ")
    equal(ran.completed, "2")
    check(ran.output:find("requests  4  ok 4", 1, true), ran.output)
end)

-- promise: docs/load-generator.md: A `Location` on another server, or one redirect too many, is a
--   failed check.
test("the number of redirects is limited", function()
    local ran = run_one(3, 'return {steps = {{path = "/loop", follow = 2}}}')
    check(ran.output:find("failed check 1", 1, true), ran.output)
    check(ran.errors:find("it is redirected more than 2 times (follow)", 1, true), ran.errors)
    ran = run_one(1, 'return {steps = {{path = "/away", follow = 2}}}')
    check(ran.errors:find("'http://example.com/' leads to another server", 1, true), ran.errors)
end)

local function count(lines)
    local counts = {}
    for _, line in ipairs(lines) do
        counts[line] = (counts[line] or 0) + 1
    end
    return counts
end

local function numbers(most)
    local list = {"n"}
    for i = 1, most do
        list[#list + 1] = tostring(i)
    end
    return table.concat(list, "\n")
end

-- promise: docs/load-generator.md: `"once"`: each row is used once, and the run ends when all were used;
test("each row is used exactly once, by any user", function()
    local text = [[return {data = {file = "n.csv", order = "once"}, steps = {
        {path = "/{n}"}, {path = "/then/{n}"}}}]]
    for _, words in ipairs{{"-c", "7", "-t", "2", "-d", "600"}, {"-c", "40", "-d", "600"},
                           {"-c", "5", "-R", "2k", "-d", "600"}} do
        local ran = run_with(words, text, {["n.csv"] = numbers(30)})
        local counts = count(ran.lines)
        for i = 1, 30 do
            equal(counts["GET /" .. i .. " - - "], 1, table.concat(words, " "))
            equal(counts["GET /then/" .. i .. " - - "], 1, table.concat(words, " "))
        end
        equal(#ran.lines, 60)
        equal(ran.completed, "30")
    end
end)

-- promise: docs/load-generator.md: all together use each row exactly as often as one worker would
test("workers and shards share the rows", function()
    local text = 'return {data = "n.csv", steps = {{path = "/{n}"}}}'
    local lines = {}
    for shard = 1, 2 do
        local ran = run_with({"-c", "4", "-t", "2", "-n", "5", "--shard", shard .. "/2"}, text,
                             {["n.csv"] = numbers(10)})
        table.move(ran.lines, 1, #ran.lines, #lines + 1, lines)
    end
    local counts = count(lines)
    equal(#lines, 20)
    for i = 1, 10 do
        equal(counts["GET /" .. i .. " - - "], 2)
    end
end)

-- promise: docs/load-generator.md: The boundary of a multipart body never occurs in its parts: if a value contains
-- it, another boundary is used.
test("a value that contains the boundary gets another boundary", function()
    local text = 'return {data = "v.csv", steps = {{path = "/", multipart = {a = "{v}"}}}}'
    local first = run_one(1, text, {["v.csv"] = "v\nx\n"}).lines[1]:match "%-%-(%S-)|"
    local line = run_one(1, text, {["v.csv"] = "v\n" .. first .. "\n"}).lines[1]
    local second = line:match "%-%-(%S-)|"
    check(second ~= first and line:find("||" .. first .. "|--" .. second .. "--", 1, true), line)
end)

-- promise: docs/load-generator.md: `sxe-http` refuses a misspelt name, a value of another type, and a place for a
-- value that no earlier step takes; the message names the step and the field.
test("wrong scenarios are refused before the run", function()
    for text, why in pairs{
        ['{path = "/"}, {pth = "/"}'] = "steps[2] has an unknown field 'pth'",
        ['{path = {}}'] = "steps[1].path must be a string, not a table",
        ['{path = "/{x}"}, {path = "/", take = {x = {json = "$"}}}'] =
            "steps[1].path has a place for 'x'",
        ['{path = "/"}, misspelt, {path = "/b"}'] = "steps[2] is nil, and others come after it",
        ['{path = "/", form = {{"a", 1}, nil, {"b", 2}}}'] = "steps[1].form[2] is nil",
    } do
        local ran = run_one(1, "return {steps = {" .. text .. "}}")
        equal(ran.status, 2)
        check(ran.errors:find(why, 1, true), ran.errors)
        equal(#ran.lines, 0)
    end
end)

-- promise: docs/load-generator.md: Matching never backtracks, so for any pattern it takes at most as many steps as
-- the bytes of the body times the items.
test("no pattern takes long to match", function()
    local ran = run_one(2, [[return {steps = {{path = "/csrf", take = {
        x = {pattern = ".-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-never"}}}}}]])
    equal(ran.failed, "2")
end)

-- promise: docs/load-generator.md: `--pipeline` is refused.
test("a user does not send the next step before the reply", function()
    local ran = run_with({"--pipeline", "2"}, 'return {steps = {{path = "/"}}}')
    equal(ran.status, 2)
    check(ran.errors:find("it cannot be combined with --pipeline", 1, true), ran.errors)
end)

-- promise: docs/load-generator.md: With `-R`, arrivals are requests: each is the next step of the
--   user that has rested longest.
test("-R counts requests, not sessions", function()
    local ran = run_with({"-R", "1k", "--arrivals", "fixed", "--requests", "40", "-c", "10"},
                         'return {steps = {{path = "/1"}, {path = "/2"}}}')
    equal(#ran.lines, 40)
    equal(ran.completed, "20")
end)
