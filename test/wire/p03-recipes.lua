-- SPDX-License-Identifier: MIT
-- Recipes of docs/recipes.md with several clients: the job queue survives kill -9, and a job that a killed worker had
-- begun is done by another worker; news reaches all waiting clients; a session belongs to one cookie name.

local http = require "http"
local httpd = require "httpd"
local start_recipe = require "recipe"

local path, script = os.tmpname(), os.tmpname()

-- Write the page's first script to a file: its jobs take `sleep` seconds, and another worker takes them over after 1 s.
local function write_script(sleep)
    local page = assert(io.open("docs/recipes.md")):read("a")
    local text = assert(page:match("```lua\n(.-)```"))
    local file <close> = assert(io.open(script, "w"))
    local changed, count = text:gsub("task%.sleep%(0%.01%)", "task.sleep(" .. sleep .. ")")
    equal(count, 1)
    changed, count = changed:gsub("BUSY = 60", "BUSY = 1")
    equal(count, 1)
    file:write(changed)
end

local function ask(server, method, body)
    local sock <close> = server:connect()
    sock:send(("%s /jobs HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s")
        :format(method, #body, body))
    return sock:recv_all()
end

local function wait_for(server, state, number)
    httpd.wait_until(function()
        return ask(server, "GET", ""):find(('"%s":%d[,}]'):format(state, number))
    end, state .. " " .. number)
end

local function kill_worker(pid)
    local file <close> = assert(io.open(("/proc/%d/task/%d/children"):format(pid, pid)))
    local child = assert(file:read("n"))
    check(os.execute("kill -KILL " .. child))
end

test("a job of a killed worker is done by the next worker", function()
    write_script(1000)
    os.remove(path)
    local server = httpd.spawn{"/usr/bin/env", "JOBS=" .. path, wire.program "sxe-httpd", "-p", "0",
                               "--lua", script}
    check(ask(server, "POST", "wash up"):find("HTTP/1.1 202", 1, true))
    wait_for(server, "busy", 1)
    write_script(0)
    kill_worker(server.pid)
    wait_for(server, "done", 1)
    server.proc:signal("TERM")
    server.proc:wait(20)
end)

os.remove(path)
os.remove(script)

local function request_of(line, body, ...)
    return http.request(line, "Connection: close", "Content-Length: " .. #body, ...) .. body
end

local function tell(server, text)
    equal(http.ask(server, request_of("POST /news", text)).status, 204)
end

local function waiting(server, seen)
    local sock = server:connect()
    sock:send(request_of("GET /news?seen=" .. seen, ""))
    return sock
end

-- The server may read the clients in any order, so a client whose request comes after the news gets the news as well.
test("all clients that wait for news get the next item, and can wait for the one after it", function()
    local server <close> = start_recipe("Waiting for news", "news:wait(0.05)", "news:wait(100)")
    for number = 1, 3 do
        local socks = {}
        for i = 1, 3 do socks[i] = waiting(server, number - 1) end
        tell(server, "news " .. number)
        for i = 1, 3 do
            local body = socks[i]:read_reply().body
            check(body:find(('"text":"news %d"'):format(number), 1, true), body)
            check(body:find(('"number":%d'):format(number), 1, true), body)
            socks[i]:close()
        end
    end
end)

test("a client that has the latest news waits as long as the recipe says", function()
    local server <close> = start_recipe("Waiting for news")
    tell(server, "one")
    equal(http.ask(server, request_of("GET /news?seen=0", "")).status, 200)
    for _ = 1, 3 do equal(http.ask(server, request_of("GET /news?seen=1", "")).status, 204) end
end)

test("a session is found by the cookie with its name, and by no other", function()
    local server <close> = start_recipe("Sessions")
    local login = http.ask(server, request_of("POST /login", "user=ann",
                                              "Content-Type: application/x-www-form-urlencoded"))
    local id = assert(login.headers["set-cookie"]:match("^session=([^;]+);"))
    for cookies, status in pairs{
        ["session=" .. id] = 200,
        ["theme=dark; session=" .. id] = 200,
        ["theme=dark;session=" .. id .. "; a=b=c"] = 200,
        ["php_session=x; session=" .. id] = 200,
        ["=; a; ; session=" .. id] = 200,
        ["php_session=" .. id] = 401,
        ["my-session=" .. id] = 401,
        ["a=session=" .. id] = 401,
        ["a=\"; xsession=" .. id] = 401,
        ["session=" .. id .. "x"] = 401,
        ["sessions=" .. id] = 401,
        ["session="] = 401,
        ["session=" .. id:rep(90)] = 401,
    } do
        equal(http.ask(server, request_of("GET /", "", "Cookie: " .. cookies)).status, status, cookies)
    end
end)
