-- SPDX-License-Identifier: MIT
-- A handler that waits by time, for a request that came before the reply to the request before it was sent.

-- A server in sxe-lua with nothing else to do: what does not wake a handler here never wakes it.
local function idle_server()
    return wire.spawn{wire.program "sxe-lua", "-e", [[
        local http, task = require "sxe.http", require "sxe.task"
        local waits = {
            ["/sleep"] = function() return task.sleep(0.002) end,
            ["/yield"] = function() return task.sleep(0) end,
            ["/event"] = function() return task.event():wait(0.002) end,
            ["/queue"] = function() return task.queue(1):get(0.002) end,
            ["/refuse"] = function() return task.sleep(0.001) end,
        }
        local server = http.serve{ port = 0, handler = function(req)
            waits[req.path]()
            return req.path == "/refuse" and 405 or req.path
        end }
        task.start(function() print(server.port) io.stdout:flush() end)]]}
end

-- promise: docs/lua-handlers.md: waits for that time and returns true, or `nil, "cancelled"`.
test("a wait of a request that was there when the reply before it was sent ends in time", function()
    local proc <close> = idle_server()
    local sock <close> = wire.connect("127.0.0.1", tonumber(proc:line(20)))
    local paths = {"/sleep", "/yield", "/event", "/queue", "/sleep", "/sleep"}

    sock:timeout(60)
    for _, path in ipairs(paths) do sock:send(("GET %s HTTP/1.1\r\nHost: a\r\n\r\n"):format(path)) end
    for _, path in ipairs(paths) do equal(sock:read_reply().body, path) end
end)

test("a wait of a request after a body that its handler did not read ends in time", function()
    local proc <close> = idle_server()
    local sock <close> = wire.connect("127.0.0.1", tonumber(proc:line(20)))
    local post = "POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n" .. ("x"):rep(60000)

    sock:timeout(60)
    for _ = 1, 20 do
        sock:send(post)
        equal(sock:read_reply().status, 405)
        sock:send "GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n"
        equal(sock:read_reply().body, "/sleep")
    end
end)
