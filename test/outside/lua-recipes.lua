-- SPDX-License-Identifier: MIT
--
-- The recipes of docs/recipes.md that share state, with more than one worker.

local http = require "http"
local start_recipe = require "recipe"

local function request_of(line, body, ...)
    return http.request(line, "Connection: close", "Content-Length: " .. #body, ...) .. body
end

-- Ask on as many connections, which both workers get, and count the replies by their bodies, or status if that is not 200.
local function ask_both(server, number, request)
    local counts = {}
    for _ = 1, number do
        local reply = http.ask(server, request)
        local key = reply.status == 200 and reply.body or reply.status
        counts[key] = (counts[key] or 0) + 1
    end
    return counts
end

-- promise: docs/recipes.md: The dicts are in files, which all workers of `-w` and all servers with that file share, and
--   which a reload keeps.
test("what the recipes promise for all workers holds with -w 2, and after a reload", function()
    local get = request_of("GET /", "")
    local limits <close> = start_recipe("A rate limit for all workers", "1, 10)", "1, 1000)", "-w", "2")
    local counts = ask_both(limits, 30, get)
    equal(counts["request 1\n"], 1)
    equal(counts["request 2\n"], 1)
    equal(counts[429], 28)

    local money <close> = start_recipe("Moving money", nil, nil, "-w", "2")
    counts = ask_both(money, 20, get)
    equal(counts["true ann 40 bob 60\n"], 1)
    equal(counts["false ann 40 bob 60\n"], 19)
    money:reload()
    equal(ask_both(money, 20, get)["false ann 40 bob 60\n"], 20)

    local server <close> = start_recipe("Sessions", nil, nil, "-w", "2")
    local login = http.ask(server, request_of("POST /login", "user=ann",
                                              "Content-Type: application/x-www-form-urlencoded"))
    local who = request_of("GET /", "", "Cookie: session=" .. login.headers["set-cookie"]:match("^session=([^;]+);"))
    equal(ask_both(server, 20, who)["hello ann\n"], 20)
    server:reload()
    equal(ask_both(server, 20, who)["hello ann\n"], 20)

    local cache <close> = start_recipe("A cache with times to live", "return key:upper()",
                                               'return key .. require "sxe.crypto".random_token()', "-w", "2")
    for _, count in pairs(ask_both(cache, 20, request_of("GET /?key=pear", ""))) do equal(count, 20) end
end)
