-- SPDX-License-Identifier: MIT
--
-- The script of docs/tutorial-api.md, which is examples/lua/books.lua, with the commands of the tutorial.

local http = require "http"
local httpd = require "httpd"
local tutorial = require "tutorial"

local function start(file, workers)
    local command = {wire.program("sxe-httpd"), "--lua", "examples/lua/books.lua", "-p", "0", "-w", tostring(workers or 1)}
    command[#command + 1] = not workers and tutorial.counted("--lua-coverage", "tutorial-api") or nil
    table.move({"--", file}, 1, 2, #command + 1, command)
    return httpd.spawn(command)
end

-- Call run(server, file) with a new server and file. With workers, it has so many.
local function with_server(run, workers)
    local file = os.tmpname()
    os.remove(file)
    local good, message = pcall(function()
        local server <close> = start(file, workers)
        run(server, file)
    end)
    os.remove(file)
    if not good then error(message, 0) end
end

local function ask(server, line, body)
    body = body or ""
    return http.ask(server, http.request(line, "Connection: close", "Content-Length: " .. #body) .. body)
end

-- The members of a JSON object, sorted, because their order is not defined.
local function members(json)
    local list = {}
    for member in json:match("^{(.*)}$"):gmatch('"%w+":[^,]+') do list[#list + 1] = member end
    table.sort(list)
    return table.concat(list, ",")
end

-- promise: docs/tutorial-api.md: The script is [examples/lua/books.lua](../examples/lua/books.lua):
test("the page shows the script", function()
    check(tutorial.shows("docs/tutorial-api.md", "examples/lua/books.lua"))
end)

test("the commands of the page reply as it says", function()
    with_server(function(server)
        local text <close> = assert(io.open("docs/tutorial-api.md"))
        local commands = 0
        for command, reply in text:read("a"):gmatch("    %$ curl ([^\n]+)\n    ({[^\n]+})") do
            commands = commands + 1
            local body, path = command:match("^%-d '(.-)' http://127.0.0.1:8000(/%S+)$")
            path = path or command:match("^http://127.0.0.1:8000(/%S+)$")
            equal(members(ask(server, (body and "POST " or "GET ") .. path, body).body), members(reply), command)
        end
        equal(commands, 3)
        equal(ask(server, "DELETE /books/1").status, 204)
        equal(ask(server, "GET /books/1").body, '{"error":"no such book"}')
    end)
end)

-- promise: docs/tutorial-api.md: A path without a route is answered 404. A method that the path does not have is
-- answered 405, with a list of its methods.
test("other paths and methods are refused", function()
    with_server(function(server)
        equal(ask(server, "GET /other").status, 404)
        local reply = ask(server, "PATCH /books/1")
        equal(reply.status, 405)
        check(reply.headers.allow:find "DELETE" and reply.headers.allow:find "PUT", reply.headers.allow)
    end)
end)

-- promise: docs/tutorial-api.md: so two processes never assign the same id.
test("ids are never given twice, and the books outlive the server", function()
    with_server(function(server, file)
        local seen = {}
        for i = 1, 40 do
            local id = ask(server, "POST /books", ('{"title":"%d"}'):format(i)).body:match('"id":(%d+)')
            check(id and not seen[id], id)
            seen[id] = i
        end
        local after <close> = start(file)
        for id, title in pairs(seen) do
            check(ask(after, "GET /books/" .. id).body:find(('"title":"%d"'):format(title), 1, true))
        end
    end, 2)
end)

test("a change is kept, and one of a book that is gone is refused", function()
    with_server(function(server)
        ask(server, "POST /books", '{"title":"Emma"}')
        equal(ask(server, "PUT /books/1", '{"title":"Persuasion","year":1817}').status, 200)
        check(ask(server, "GET /books/1").body:find('"year":1817', 1, true))
        equal(ask(server, "PUT /books/2", '{"title":"Emma"}').status, 404)
        equal(ask(server, "PUT /books/1", '{"title":""}').status, 422)
        equal(ask(server, "PUT /books/1", "{").status, 400)
    end)
end)
