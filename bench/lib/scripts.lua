-- SPDX-License-Identifier: MIT
--
-- What: servers whose handlers are scripts, beside the C function that does the same: ours in C and
-- in Lua (bench/lua-twins.c, bench/lua/), nginx with its Lua module, Node.
-- Place: bench.lua's row "lua". Those that are not installed are named, not measured.
--
-- A case is {name, target, script, what}; contenders(case, bench) are those of it, C first, as
-- bench.lua measures them. bench has what they are started with: spawn(command), nginx(path, row,
-- fields), port(), cpu.

local scripts = {}

local MODULES = "/usr/lib/nginx/modules/"
local SHARE = "/usr/share/lua/5.1/"

scripts.cases = {
    {name = "2010", target = "/", script = "test/2010/hello.lua", what = "The five lines of 2010"},
    {name = "hello", target = "/", script = "bench/lua/hello.lua", what = 'return "Hello"'},
    {name = "router", target = "/users/42", script = "bench/lua/router.lua",
     what = "A route with a parameter, three header fields, JSON"},
    {name = "hello", target = "/", script = "bench/lua/hello.lua", depth = 16,
     what = 'return "Hello", 16 requests at a time'},
}

-- S3: each reply a second after its request. One digit, as the replies' lengths are counted.
scripts.sleeper = {name = "sleep", target = "/?number=8", script = "examples/lua/random.lua"}

local function exists(path)
    local file <close> = io.open(path)
    return file ~= nil
end

function scripts.missing()
    local list = {}
    if not wire.has("node") then
        list[#list + 1] = "Node is not installed"
    end
    if not wire.has("nginx") or not exists(MODULES .. "ngx_http_lua_module.so") then
        list[#list + 1] = "nginx with its Lua module (libnginx-mod-http-lua) is not installed"
    end
    return list
end

local function twin(bench, what)
    return function()
        return bench.spawn{wire.program("bench/lua-twins"), tostring(bench.port()), what,
                           cpu = bench.cpu}
    end
end

function scripts.contenders(case, bench)
    local list = {{name = "sxe, Lua", start = twin(bench, case.script)}}
    if case.name ~= "sleep" then
        table.insert(list, 1, {name = "sxe, C", start = twin(bench, case.name)})
    end
    if case.name ~= "2010" and wire.has("nginx") and exists(MODULES .. "ngx_http_lua_module.so") then
        list[#list + 1] = {name = "nginx, Lua", start = function(row)
            return bench.nginx("bench/peers/nginx-lua.conf", row,
                               {MODULES = MODULES, SHARE = SHARE})
        end}
    end
    if case.name ~= "2010" and wire.has("node") then
        list[#list + 1] = {name = "Node", start = function()
            return bench.spawn{wire.has("node"), "bench/peers/node.js", tostring(bench.port()),
                               case.name, cpu = bench.cpu}
        end}
    end
    return list
end

return scripts
