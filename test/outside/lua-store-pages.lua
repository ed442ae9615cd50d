-- SPDX-License-Identifier: MIT
--
-- The scripts of docs/store.md, sketch.md, redis.md and redis-sharding.md run as they stand there; those of redis with the
-- ports of real servers. (Those of docs/postgres.md run in lua-postgres.lua.)

local servers = require "redis-server"

-- The nth script of a page, with replacements of texts.
local function block_of(page, nth, replacements)
    local file <close> = assert(io.open("docs/" .. page))
    local block
    for text in file:read "a":gmatch "```lua\n(.-)```" do
        nth = nth - 1
        block = nth == 0 and text or block
    end
    for from, to in pairs(replacements or {}) do
        local at, last = block:find(from, 1, true)
        check(at, from)
        block = block:sub(1, at - 1) .. to .. block:sub(last + 1)
    end
    return block
end

-- What a script prints, run in a directory of its own.
local function output_of(text)
    local proc <close> = wire.spawn{"sh", "-c", 'd=$(mktemp -d) && p=$(realpath "$1") && cd "$d" && "$p" -e "$2"; ' ..
        's=$?; cd / && rm -r "$d"; exit $s', "sh", wire.program "sxe-lua", text}
    local output = proc:output(120)
    equal(proc:errors(), "")
    equal(proc:wait(120), 0)
    return output
end

local function has(module)
    if wire.spawn{wire.program "sxe-lua", "-e", "require '" .. module .. "'"}:wait(120) == 0 then return true end
    print("skipped: the scripts of " .. module .. ", because sxe-lua was built without it")
    return false
end

-- The comments of a script say what it prints.
test("the scripts of the page on stores print what their comments say", function()
    if not has "sxe.store" then return end
    equal(output_of(block_of("store.md", 1)), "Ann\tnil\nuser:1\tAnn\nuser:2\tBob\n1\ttrue\tfalse\n")
    equal(output_of(block_of("store.md", 2)), "true\t3\t7\ntrue\tnot enough\ntrue\tfalse\ttrue\nnew\nb\n")
end)

test("the script of the page on sketches counts a visitor", function()
    equal(output_of(block_of("sketch.md", 1)), "1 visitors\n")
end)

if not servers.are_installed "the scripts of the pages on redis" then return end

local function start(name, ...)
    local more = {...}
    return servers.start(name, function(_, port) return {"--port", tostring(port), "--save", "", table.unpack(more)} end)
end

local all = {__close = function(group)
    for _, server in pairs(group) do server.proc:signal "KILL" end
    servers.remove_files()
end}

test("the scripts of the page on redis", function()
    local group <close> = setmetatable({one = start "one"}, all)
    local port = tostring(group.one.port)
    equal(output_of(block_of("redis.md", 1, {["6379"] = port})), "hits: 1\n")
    -- The second one goes on with its `db`; its loop waits for messages.
    equal(output_of(block_of("redis.md", 1, {["6379"] = port}) .. [[
require "sxe.task".start(function()
  while db:publish("weather", "rain") == 0 do require "sxe.task".sleep(0.001) end
end)
]] .. block_of("redis.md", 2, {["  print(message.channel, message.text)"] =
        "  print(message.channel, message.text, db:get 'a') break"})), "hits: 2\n2\nweather\train\t4\n")
end)

test("the script of the page with Sentinels", function()
    local group <close> = setmetatable({master = start "master"}, all)
    group.sentinel = servers.start("sentinel", function(path, port)
        local file <close> = assert(io.open(path .. "/conf", "w"))
        file:write("sentinel monitor mymaster 127.0.0.1 ", group.master.port, " 1\n")
        return {path .. "/conf", "--port", tostring(port), "--sentinel"}
    end, "Sentinel ID is")
    equal(output_of(block_of("redis.md", 3, {["26379"] = tostring(wire.free_port()), ["26380"] =
        tostring(group.sentinel.port), ["26381"] = tostring(wire.free_port())})), "1\n")
end)

local function ask(...)
    local proc <close> = wire.spawn{wire.has "redis-cli", ...}
    local output = proc:output(120)
    equal(proc:wait(120), 0, output)
    return output
end

test("the script of the page on Redis Cluster", function()
    local group <close> = setmetatable({}, all)
    for n = 1, 3 do
        group[n] = servers.start("node", function(_, port, bus)
            return {"--port", tostring(port), "--cluster-enabled", "yes", "--cluster-port", tostring(bus), "--save", ""}
        end)
    end
    ask("--cluster", "create", "127.0.0.1:" .. group[1].port, "127.0.0.1:" .. group[2].port,
        "127.0.0.1:" .. group[3].port, "--cluster-yes")
    for n = 1, 3 do
        require "httpd".wait_until(function()
            return ask("-p", tostring(group[n].port), "cluster", "info"):find("cluster_state:ok", 1, true)
        end, "the cluster is whole")
    end
    local output = output_of(block_of("redis.md", 4, {["7000"] = tostring(group[1].port), ["7001"] =
        tostring(group[2].port)}))
    local first, keys = output:match "^([^\n]*)\n(.*)$"
    local sum, lines = 0, 0
    for number in keys:gmatch "keys of a node: (%d+)\n" do sum, lines = sum + number, lines + 1 end
    equal(first, "apples: 3, hits: 1")
    equal(lines, 3)
    equal(sum, 3)
end)

test("the script of the page on sharding", function()
    local group <close> = setmetatable({}, all)
    local ports = {}
    for i, name in ipairs{"red", "red", "blue", "blue"} do
        group[i] = start(name .. i)
        ports["127.0.0.1:700" .. i] = "127.0.0.1:" .. group[i].port
    end
    local output = output_of(block_of("redis-sharding.md", 1, ports))
    check(output == "red\t1\n" or output == "blue\t1\n", output)
end)
