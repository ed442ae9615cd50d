-- SPDX-License-Identifier: MIT
--
-- Forms with files, by docs/lua-handlers.md.

local project = require "project"
local script = require "script"

local HANDLER = [[
local multipart = require "sxe.multipart"
return function(req)
  local form <close> = multipart.read(req, { directory = arg[1], file_max = 100000, text_max = 10, parts_max = 3 })
  local f = form.files.f
  if form.texts.keep then form:keep() end
  if form.texts.fail then error "broken" end
  if form.texts.wait then require "sxe.task".sleep(1000) end
  return ("%d %s %s"):format(#form.parts, form.texts.t or "-", f and f.name .. " " .. f.size or "-")
end
]]

-- The first form is not closed, the second one is in a coroutine that is dropped.
local CARELESS = [[
local multipart, forms = require "sxe.multipart", 0
return function(req)
  forms = forms + 1
  if forms == 1 then return tostring(#multipart.read(req, { directory = arg[1] }).parts) end
  coroutine.wrap(function()
    local form <close> = multipart.read(req, { directory = arg[1] })
    coroutine.yield(#form.parts)
  end)()
  collectgarbage()
  return "dropped"
end
]]

local function start_with(handler, work, ...)
    local arguments = { ... }
    table.move({ "--", work:path "files" }, 1, 2, #arguments + 1, arguments)
    work:write("files/.keep", "")
    os.remove(work:path "files/.keep")
    return script.start(handler, table.unpack(arguments))
end

local function start(work, ...)
    return start_with(HANDLER, work, ...)
end

local function part(fields, bytes)
    return "--B\r\nContent-Disposition: form-data; " .. fields .. "\r\n\r\n" .. bytes .. "\r\n"
end

local function head_of(length)
    return "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=B\r\n" ..
           ("Content-Length: %d\r\n\r\n"):format(length)
end

local function send(server, body)
    local sock <close> = server:connect()
    sock:send(head_of(#body) .. body)
    return sock:read_reply()
end

local function count_files(work)
    local _, output = work:sh "ls files | wc -l"
    return tonumber(output)
end

-- Wait until the directory has so many files.
local function wait_for_files(work, count)
    for _ = 1, 6000 do
        if count_files(work) == count then return end
        wire.sleep(0.01)
    end
    error("the directory never had " .. count .. " files", 2)
end

local FILE = part('name="f"; filename="a.txt"', ("x"):rep(70000))

-- promise: docs/lua-handlers.md: A form that is too large makes the reply `413`, one that is damaged or ends early `400`,
-- and a body of another type `415`
test("forms that are too large, damaged or of another type are refused, and leave no files", function()
    local work <close> = project.start()
    local server <close> = start(work)
    equal(send(server, part('name="t"', "text") .. FILE .. "--B--\r\n").body, "2 text a.txt 70000")
    for body, status in pairs{
        [FILE .. part('name="g"; filename="b"', ("x"):rep(30001)) .. "--B--\r\n"] = 413,
        [FILE .. part('name="t"', ("x"):rep(11)) .. "--B--\r\n"] = 413,
        [FILE .. part('name="t"', ""):rep(3) .. "--B--\r\n"] = 413,
        [FILE .. part('nome="t"', "") .. "--B--\r\n"] = 400,
        [FILE .. "--B"] = 400,
        [FILE .. part('name="fail"', "") .. "--B--\r\n"] = 500} do
        equal(send(server, body).status, status)
        equal(count_files(work), 0)
    end
    local sock <close> = server:connect()
    sock:send "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    equal(sock:read_reply().status, 415)
end)

-- promise: docs/lua-handlers.md: The end of the `<close>` variable removes the files of the directory, also after an
-- error, except after **`form:keep()`**.
test("files are kept if the handler says so, and removed when a client leaves in the middle", function()
    local work <close> = project.start()
    local server <close> = start(work)
    equal(send(server, FILE .. part('name="keep"', "") .. "--B--").status, 200)
    wait_for_files(work, 1)
    local sock = server:connect()
    sock:send(head_of(100000) .. FILE:sub(1, 60000))
    wait_for_files(work, 2)
    sock:close()
    wait_for_files(work, 1)
end)

-- promise: docs/lua-handlers.md: A server that stops or reloads removes the files of the forms that it gives up
test("a server that stops or reloads leaves no files of forms that are being read or used", function()
    for _, signal in ipairs{ "TERM", "HUP" } do
        local work <close> = project.start()
        local server <close> = start(work, "--stop-timeout", "1")
        local reading <close> = server:connect()
        local using <close> = server:connect()
        local body = FILE .. part('name="wait"', "") .. "--B--"
        reading:send(head_of(100000) .. FILE:sub(1, 60000))
        using:send(head_of(#body) .. body)
        wait_for_files(work, 2)
        server.proc:signal(signal)
        wait_for_files(work, 0)
        if signal == "TERM" then server.proc:wait() end
        equal(count_files(work), 0)
    end
end)

-- promise: docs/lua-handlers.md: Without `<close>`, or in a coroutine that is dropped, the files of a form that was read
-- are left, too.
test("the files of a form that nobody closes are left", function()
    local work <close> = project.start()
    local server <close> = start_with(CARELESS, work)
    for files, reply in ipairs{"1", "dropped"} do
        equal(send(server, FILE .. "--B--").body, reply)
        equal(count_files(work), files)
    end
end)

-- promise: docs/lua-handlers.md: Names of parameters may be in upper case, and blanks may stand around `=`.
test("odd heads of parts are understood", function()
    local work <close> = project.start()
    local server <close> = start(work)
    for fields, name in pairs{
        ['NAME = "f" ; FileName = "a.txt"'] = "a.txt 1",
        ['filename="a; name=t"; name="f"'] = "a; name=t 1",
        ['name="f"; filename="a\\"b\\\\c"'] = 'a"b\\c 1',
        ['name="f"; filename*=UTF-8\'\'%61.txt'] = "a.txt 1",
        ['name="f"; filename="a"; filename*=UTF-8\'\'b'] = "a 1"} do
        equal(send(server, part(fields, "x") .. "--B--").body, "1 - " .. name)
    end
    equal(send(server, part('name="f"; filename=""', "") .. "--B--").body, "0 - -")
end)

-- promise: docs/lua-handlers.md: A body is read once, by one task: another `read`, or one after `req:body()`, raises an
-- error. After the end of the form `form:keep()` raises an error, because the files are gone.
test("two readers of one form, and a form that is kept too late, are mistakes", function()
    local server <close> = script.start[[
local multipart, task = require "sxe.multipart", require "sxe.task"
local function fault(f, ...)
  local is_good, why = pcall(f, ...)
  return is_good and "none" or tostring(why):match "[^:]*$"
end
return function(req)
  if req.path == "/body" then req:body() return fault(multipart.read, req) end
  if req.path == "/options" then return fault(multipart.read, req, { file_max = -1 }) end
  local other, kept = "", nil
  do
    local reader = task.start(function() other = fault(multipart.read, req) end)
    local form <close> = multipart.read(req)
    reader:join()
    kept = form
  end
  return fault(multipart.read, req) .. "," .. other .. "," .. fault(kept.keep, kept)
end]]
    local ONCE <const> = " read it once"
    local function ask(path)
        local sock <close> = server:connect()
        local body = part('name="t"', "text") .. "--B--"
        sock:send((head_of(#body):gsub("/", path, 1)) .. body)
        return sock:read_reply().body
    end
    equal(ask "/", ONCE .. "," .. ONCE .. ", the form has ended, and its files are removed")
    equal(ask "/body", ONCE)
    equal(ask "/options", " 0 or more expected, got -1")
end)
