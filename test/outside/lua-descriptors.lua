-- SPDX-License-Identifier: MIT
--
-- What programs that a script runs find open: nothing of the script's modules.

local cli = require "cli"

local has_store = wire.spawn{wire.program "sxe-lua", "-e", "require 'sxe.store'"}:wait(120) == 0

local function new_place()
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute("mkdir " .. path))
    return path, setmetatable({}, {__close = function() os.execute("rm -r " .. path) end})
end

local OPENS <const> = [[
local dict, pool, file, sketch = require "sxe.dict", require "sxe.pool", require "sxe.file", require "sxe.sketch"
local tcp, udp, http, worker = require "sxe.tcp", require "sxe.udp", require "sxe.http", require "sxe.worker"
local client, spawn = require "sxe.client", require "sxe.spawn"
local store = has_store and require "sxe.store"
local kept = {}
local function keep(...)
    assert(...)
    kept[#kept + 1] = {...}
    return ...
end
local server = keep(tcp.serve("127.0.0.1", 0, function(conn)
    conn:write "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1"
    conn:read("l", 600)
    conn:read("a", 600)
end))
http.serve{ip = "127.0.0.1", port = 0, handler = function() return "x" end}
for _, sync in ipairs(store and {"full", "meta", "none"} or {}) do
    local db = keep(store.open(place .. "/store-" .. sync, {sync = sync}))
    assert(db:put("a", "b"))
    keep(db:snapshot())
end
keep(dict.open{name = "dict", cells = 64, file = place .. "/dict"})
keep(pool.open{name = "pool", count = 8, states = {"A", "B"}, fields = {n = "u32"}, file = place .. "/pool"})
keep(sketch.hll{name = "hll", file = place .. "/hll"})
keep(file.open(place .. "/file", "w"))
keep(udp.open("127.0.0.1", 0))
keep(tcp.connect("127.0.0.1", server.port))
keep(client.get("http://127.0.0.1:" .. server.port .. "/", {stream = true}))
keep(worker.new{code = "return function() end"})
keep(spawn{"cat", stdin = "pipe"})
]]

-- Open one of each kind, then run a text; returns what it prints.
local function run(text)
    local place <const>, removed <close> = new_place()
    local path <const> = place .. "/opens.lua"
    local script <close> = assert(io.open(path, "w"))
    script:write(("local place, has_store = %q, %s\n"):format(place, has_store), OPENS, text, "\nos.exit(0)\n")
    script:close()
    return cli.output_of(120, {"env", "SXE_LOG_LEVEL=2", wire.program "sxe-lua", path})
end

-- Has the shell that runs it print what its descriptors are, beside the standard ones.
local LIST <const> = "for n in $(seq 3 300); do test -L /proc/$$/fd/$n && readlink /proc/$$/fd/$n; done; true"

-- What any program that this test starts finds open.
local function list_of_tests_own()
    local proc <close> = wire.spawn{"sh", "-c", LIST}
    local output = proc:output(120)
    equal(proc:wait(120), 0)
    return output
end

-- promise: docs/lua-handlers.md: A program that a script starts, with this module, io.popen or os.execute, inherits
-- no descriptor that the modules of sxe opened.
test("a program of a script gets no descriptor of the script's modules", function()
    local own <const> = list_of_tests_own()
    for _, call in ipairs{
        'io.write((assert(spawn{"sh", "-c", %q}):read "a"))',
        'io.write((io.popen(%q):read "a"))',
        "os.execute(%q)",
    } do
        equal(run(call:format(LIST)), own)
    end
end)
