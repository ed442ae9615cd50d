-- SPDX-License-Identifier: MIT
--
-- What: a script that does anything in any order: calls our functions and methods with whatever it
-- has, wrong values and things that are closed among it, from finalizers, metamethods, comparisons,
-- coroutines and <close> variables, and cancels tasks meanwhile. No more than an error may come of
-- it. Usage, in a directory of its own, which it litters:
--
--     sxe-lua --memory 64m --cpu 500ms hostile.lua SEED STEPS
--
-- Place: test/wire/l03-hostile.lua runs it for seconds, tools/fuzz.sh for longer.
--
-- Shape: each step does some of the deeds; what they return is put into a bag, from which values
-- are taken for the next. It ends with status 1 or 7, and mostly after printing "the end": all else
-- is a fault.
--
-- Limits: files below the directory, addresses of this machine, the programs cat and true. A seed
-- repeats what is chosen, but not when the collector runs and what comes first of two events. After
-- so many SECONDS of CPU time nothing more is done.

local seed, steps = math.tointeger(arg[1]), math.tointeger(arg[2])
local BAG, DEPTH, SECONDS = 400, 6, 4
local random = math.random
math.randomseed(seed)

local task, timer, tcp, udp, http = require "sxe.task", require "sxe.timer", require "sxe.tcp",
                                    require "sxe.udp", require "sxe.http"
local file, pool, dict, spawn = require "sxe.file", require "sxe.pool", require "sxe.dict",
                                require "sxe.spawn"
local client = require "sxe.client"

-- Local copies, because the scripts under test change the tables of modules.
local sleep, start, all_tasks, this_task = task.sleep, task.start, task.all, task.self
local connect, after, wrap, yield = tcp.connect, timer.after, coroutine.wrap, coroutine.yield
local select, unpack, pack = select, table.unpack, table.pack
local min, find, print, clock = math.min, string.find, print, os.clock

local function words(text)
    local list = {}
    for word in text:gmatch "%S+" do list[#list + 1] = word end
    return list
end

local function one_of(list) return list[random(#list)] end
local function chance(n) return random(n) == 1 end

-- ---- Values ----

-- Methods, properties and options, ours and Lua's.
local names = words [[
    listen messages rows payload channel copy_in copy_out arrays bytea columns command exec prepare query rows_max bytes_max transaction isolation retries conninfo call code cores cpu_ms calls map memory name parent receive renew destroy secret token persistent lifetime guard filter cookie
    abort accept acquire add addr address after age all any append at atomic batch body buf
    bodies buf_clear buf_used bytes cache_control cancel cas cell_size cells chains check chunks clear close
    comment connect connections cookie cookies count counter ctx cwd data deadline debug dec decode delete diag
    array decode_base64 decode_hex decode_url dot_files each encode encode_base64 encode_hex encode_url
    env error escaped_params escaped_path event every evicts exact exit_status expect expire fail fatal
    fields file find finish form found from get gzip half_close handler http_only max_age same_site secure partitioned domain head headers host id idle ifind inc
    index info interval ip is is_begun is_set join json kill length level limits line lines link
    list listen listing local_addr local_port lock log_level mark max method min mkdir mode move
    mtime n name next null ok pad form url uuid4 uuid7 digest hmac new_digest new_hmac finish random_bytes
    random_integer random_token random_text equal hkdf pbkdf2 seal open seal_with_nonce open_with_nonce aad algorithm rounds salt private_key public_key public sign verify pkcs1 digest raw sign_jwt verify_jwt compile escape gmatch gsub oldest on_cancel on_error on_timeout onclose onconnect onread open
    options parallel params parents pass patch path peek peer peer_addr peer_port pid plan_tests
    port post put user query queue ranges read read_arg recvfrom redirect release remove rename repair
    requests reset resume retry route router routes running self semaphore send sendto serve set
    shards shared shutdown size sleep snapshot split sse start stat state states static stats
    status stderr stdin stdout stop sum sync take target text timeout timeouts to touch trace
    ttl type types unix uptime use version wait warn write __call __close __gc __index __len
    __newindex
    render compile layout include root reload globals]]

local texts = {
    "", "x", "a.txt", "dir", "dir/b.txt", "\0", "a\0b", ("y"):rep(300), ("z"):rep(20000),
    "127.0.0.1", "::1", "0", "-1", "1e400", "GET", "l", "L", "a", "u32 hits, char[24] name", "name",
    "free", "busy", "r", "w+", "a+", "TERM", "cat", "true", '{"a":[1,2]}', "[[[", "\xff\xfe",
    "%s%s%n", "null", "pipe", "inherit", "created", "p1", "d1", "./p1", "./d1",
    "http://127.0.0.1:1/", "https://127.0.0.1:1/a?b#c"}

local numbers = {
    0, 1, -1, 2, 3, 7, 64, 255, 256, 65535, 65536, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 53,
    math.maxinteger, math.mininteger, 0.001, 0.5, -0.5, 1e9, 1e18, 1e308, 1 / 0, -1 / 0, 0 / 0}

local bag, ours = {}, {} -- ours: userdata, which are handles, files, dicts and the like

-- Paths that lead out of the directory are nothing for it.
local function keep(value)
    if value == nil then return end
    if type(value) == "string" and (find(value, "^[/.]") or #value > 300) then return end
    local into = type(value) == "userdata" and ours or bag
    into[#into < BAG and #into + 1 or random(#into)] = value
end

local function kept()
    local from = chance(2) and #ours > 0 and ours or bag
    return #from > 0 and one_of(from) or nil
end

local act, value -- below

local function arguments()
    local list, number = {}, random(0, 5)
    for i = 1, number do list[i] = value() end
    return unpack(list, 1, number)
end

local makers = {
    function() return function() error "boom" end end,
    function()
        return function() error(setmetatable({}, {__tostring = function() error "x" end})) end
    end,
    function() return function() return act() end end,
    function() return function() return yield(1) end end,
    function() return function() sleep(random() / 1000) end end,
    function() return function() collectgarbage() return act() end end,
    function() return wrap(function() act() yield(2) act() end) end,
    function()
        return function(...)
            for i = 1, select("#", ...) do keep((select(i, ...))) end
            return ...
        end
    end,
    function()
        return function()
            local closed <close> = setmetatable({}, {__close = function() act() end})
            act()
            return true
        end
    end,
    function() return function() return random(10) end end,
}
local function some_function() return one_of(makers)() end
local function perhaps_function(n) return chance(n) and some_function() or nil end

local function with_metamethods()
    local metatable = {__tostring = perhaps_function(2), __pairs = perhaps_function(3),
                       __gc = perhaps_function(2), __name = chance(2) and "fake" or nil}
    for _, name in ipairs(words [[__index __newindex __len __call __eq __lt __le __concat __close
                                  __add __idiv __unm]]) do
        metatable[name] = some_function()
    end
    return setmetatable({}, metatable)
end

local function wrong_options()
    local options = {}
    for _ = 1, random(6) do options[one_of(names)] = value() end
    for _ = 1, random(0, 3) do options[#options + 1] = value() end
    return not chance(3) and options
           or setmetatable(options, {__index = function() return act() end, __len = some_function(),
                                     __gc = perhaps_function(4)})
end

local right = {
    function()
        return {name = "p" .. random(4), count = random(8), states = {"free", "busy", "old"},
                fields = "u32 hits, char[24] name", timeouts = chance(2) and {busy = 0.01} or nil,
                on_timeout = perhaps_function(2), shared = chance(3) or nil,
                shards = chance(3) and 2 or nil, file = chance(3) and "./p" .. random(3) or nil}
    end,
    function()
        return {cells = 64, name = "d" .. random(3), evicts = chance(2), shared = chance(3) or nil,
                file = chance(3) and "./d" .. random(3) or nil}
    end,
    function() return {port = 0, ip = "127.0.0.1", handler = some_function()} end,
    function() return {"cat", stdin = "pipe", stdout = "pipe"} end,
    function() return {"true"} end,
    function()
        return {handler = some_function(), connections = random(4),
                timeout = chance(2) and 0.01 or nil}
    end,
    function() return {timeout = chance(2) and 0.001 or 5} end,
    function() return {data = "x", event = "e", retry = 1} end,
    function() return {some_function(), some_function(), some_function()} end,
}

-- What they should be; some through a metamethod that does something else meanwhile.
local function right_options()
    local options = one_of(right)()
    if not chance(3) then return options end
    local shown = {}
    for key, option in pairs(options) do
        if chance(4) then shown[key] = option end
    end
    return setmetatable(shown, {__index = function(_, key)
        if chance(3) then act() end
        return options[key]
    end})
end

local modules = {http, tcp, udp, file, pool, dict, require "sxe.sketch", require "sxe.json",
                 require "sxe.encoding", require "sxe.log",
                 require "sxe.stats", timer, task, require "sxe", string, table, math, coroutine,
                 utf8, client}
local has_crypto, crypto = pcall(require, "sxe.crypto") -- false in a build without OpenSSL
local sessions
local has_regex, regex = pcall(require, "sxe.regex") -- false in a build without PCRE2
if has_regex then
    modules[#modules + 1] = regex
end
if has_crypto then
    modules[#modules + 1], modules[#modules + 2] = crypto, require "sxe.session"
    sessions = require "sxe.session".new{secret = ("s"):rep(32), idle = 1}
end
local worker, template = require "sxe.worker", require "sxe.template"
modules[#modules + 1] = template
modules[#modules + 1] = require "sxe.multipart"
modules[#modules + 1] = worker
local realm = require "sxe.realm"
modules[#modules + 1] = realm

local kinds = {}
local function add(list, weight, fn)
    for _ = 1, weight do list[#list + 1] = fn end
end
add(kinds, 7, kept)
add(kinds, 3, function() return one_of(texts) end)
add(kinds, 2, function() return one_of(numbers) end)
add(kinds, 1, function() return random(0, 20) end)
add(kinds, 1, function() return chance(2) end)
add(kinds, 1, with_metamethods)
add(kinds, 1, wrong_options)
add(kinds, 3, right_options)
add(kinds, 2, some_function)
add(kinds, 1, function() return coroutine.create(some_function()) end)
add(kinds, 1, function() return one_of(modules) end)
add(kinds, 1, function() end)

function value() return one_of(kinds)() end

-- ---- Functions ----

-- What would end the script, or load, or wait for what never comes, or fill the bag by itself.
local left_out = {}
for _, fn in ipairs{require, load, loadfile, dofile, print, warn, setmetatable, rawset,
                    collectgarbage, math.randomseed, table.move, table.insert} do
    left_out[fn] = true
end

-- Let functions use only what is on this machine: no name is looked up, and no path leads out of the directory.
local guarded = {}
local function guard(fn, first, is_good)
    guarded[fn] = function(...)
        for i = first, select("#", ...) do
            local argument = select(i, ...)
            if type(argument) == "string" and not is_good(argument) then return end
        end
        return fn(...)
    end
end
local function is_here(path) return not find(path, "^/") and not find(path, "..", 1, true) end
local function is_address(text) return find(text, "^[%d.]*$") or text == "::1" end
for _, fn in pairs(file) do guard(fn, 1, is_here) end
guard(tcp.connect, 1, is_address)
-- Nothing listens at port 1.
local function is_refused(text) return not find(text, "//", 1, true) or find(text, "//127.0.0.1:1/", 1, true) end
for _, fn in pairs(client) do guard(fn, 1, is_refused) end

local functions = {}
for _, module in ipairs(modules) do
    local is_ours = module ~= string and module ~= table and module ~= math and module ~= utf8
    for _, fn in pairs(module) do
        if type(fn) == "function" then add(functions, is_ours and 3 or 1, fn) end
    end
end

local server -- of HTTP

local more = {
    function() return spawn(one_of{right[4], right[5]}()) end,
    function() return http.static("dir", {listing = chance(2), dot_files = chance(2)}) end,
    function() return file.open("f" .. random(4), one_of{"r", "w", "a+", "w+"}) end,
    function() return pool.open(right_options()) end,
    function() return dict.open(right_options()) end,
    function() return require "sxe.sketch".hll{name = "h", precision = random(4, 14), shared = chance(2)} end,
    function() return require "sxe.sketch".bloom{name = "b", capacity = random(99), shared = chance(2)} end,
    function() return require "sxe.sketch".topk{name = "t", number = random(9), error = 0.1} end,
    function() return pool.open(right[1]()):take("free", "busy") end,
    function()
        local cells = dict.open(right[2]())
        cells:put("x", one_of(texts))
        keep(cells)
        return cells:snapshot()
    end,
    function() return connect("127.0.0.1", server and server.port or 1, {timeout = 1}) end,
    function()
        local other = tcp.serve("127.0.0.1", 0, some_function())
        keep(other)
        return connect("127.0.0.1", other.port, {timeout = 1})
    end,
    function()
        local other = tcp.serve("127.0.0.1", 0, some_function())
        keep(other)
        return require "sxe.redis".new{port = server and chance(2) and server.port or 1, timeout = 1}
    end,
    function()
        local has, postgres = pcall(require, "sxe.postgres")
        if not has then return end
        for _, name in ipairs{"bytea", "json", "array"} do pcall(postgres[name], one_of(texts)) end
        return postgres.new{host = "127.0.0.1", port = server and chance(2) and server.port or 1, user = "u", timeout = 1}
    end,
    function()
        local scheme, jar = one_of{"http", "https"}, chance(2) and client.jar() or nil
        keep(jar)
        return client.get(("%s://127.0.0.1:%d/"):format(scheme, server and server.port or 1),
            {timeout = 1, stream = chance(2), cookies = jar, tls = {insecure = true, name = one_of(texts)}})
    end,
    function() return udp.open("127.0.0.1", 0) end,
    function()
        if not sessions then return end
        keep(sessions)
        return require "sxe.session".new{secret = ("t"):rep(32), dict = chance(2) and dict.open{name = "s", cells = 9} or nil,
            persistent = chance(2), idle = random(9)}
    end,
    function()
        return worker.new{memory = 1 << 21, cpu_ms = random(50), calls = random(3),
            code = one_of{"return ...", "return function(...) return ... end", "local w = require 'sxe.worker' " ..
                "while true do w.parent:send(w.parent:receive(0.1)) end", "return {name = function(x) return x end}", "error {}"}}
    end,
    function()
        return realm.new{memory_max = one_of{"64K", "1M", 1 << 17}, time_max_ms = random(20),
            require = chance(2) and {"sxe.json", "sxe.log"} or nil, offer = {name = some_function(), f = value},
            code = one_of{"return ...", "return function(...) return ... end", "function name(...) return f(...) end",
                "name() while true do pcall(f) end", "local t = {} while true do t = {t, f()} end", "error {}", one_of(texts)}}
    end,
    function() return worker.run(one_of{function(x) return x end, function() error "x" end}, value()) end,
    function()
        return template.compile(one_of{"{{ name }}", "{% for k, v in pairs(x or {}) do %}{{ k }}{{{ v }}}{% end %}", "{{ name() }}",
            "{% block 'a' %}{{ x }}{% endblock %}", "{% name(x) %}", one_of(texts)}, chance(2) and "t" or nil)
    end,
    function() return template.new{root = "dir", reload = chance(2), globals = chance(2) and wrong_options() or nil} end,
    function() return http.router():get("/{id}", some_function()) end,
}
for _, fn in ipairs(more) do add(functions, 4, fn) end
for _, fn in ipairs{http.router, task.lock, task.event, task.queue} do add(functions, 2, fn) end

local function call(fn, ...)
    if left_out[fn] then return end
    local results = pack(pcall(guarded[fn] or fn, ...))
    if not results[1] then return end
    for i = 2, min(results.n, 6) do keep(results[i]) end
    return results[2]
end

-- ---- Deeds ----

-- A method or property, which most objects do not have.
local function use_member(object)
    for _ = 1, 60 do
        local name = one_of(names)
        local is_there, member = pcall(function() return object[name] end)
        if is_there and member ~= nil then
            keep(member)
            if type(member) ~= "function" then return member end
            return call(member, chance(4) and value() or object, arguments())
        end
    end
end

local function use_object()
    local object = kept()
    if type(object) == "function" then return call(object, arguments()) end
    if type(object) ~= "thread" then return use_member(object) end
    if chance(3) then return call(coroutine.close, object) end
    return call(coroutine.resume, object, arguments())
end

local function walk(object)
    keep(#object)
    keep(tostring(object))
    for key, member in pairs(object) do
        keep(key)
        keep(member)
        if chance(3) then act() end
        if chance(10) then return end
    end
end

local function forget()
    local from = chance(2) and ours or bag
    if #from == 0 then return end
    from[random(#from)] = from[#from]
    from[#from] = nil
    if chance(4) then collectgarbage(one_of{"collect", "step"}) end
end

-- A module is made again, while objects of the old one live.
local function load_again()
    local name = "sxe." .. one_of(words "http tcp udp pool dict json log stats timer task")
    if not chance(30) then return end
    package.loaded[name] = nil
    for _, fn in pairs(require(name)) do
        if type(fn) == "function" and name ~= "sxe.tcp" then functions[random(#functions)] = fn end
    end
end

local deeds = {}
add(deeds, 8, function() return call(one_of(functions), arguments()) end)
add(deeds, 8, use_object)
add(deeds, 1, function() value()[one_of(names)] = value() end)
add(deeds, 1, function() walk(value()) end)
add(deeds, 1, function() table.sort({3, 1, 2, 5}, function(a, b) act() return a < b end) end)
add(deeds, 1, function() string.gsub("abc", ".", function() return act() end) end)
add(deeds, 1, function()
    return call(wrap(function() act() yield(value()) act() end))
end)
add(deeds, 1, function()
    setmetatable({}, {__gc = some_function()})
    if chance(3) then collectgarbage() end
end)
add(deeds, 1, function() local closed <close> = value() act() end)
add(deeds, 1, forget)
add(deeds, 1, function() return call(start, some_function(), arguments()) end)
add(deeds, 1, load_again)
add(deeds, 1, function()
    for item in value(), value(), value() do
        keep(item)
        if chance(4) then break end
    end
end)

local depth = 0

function act()
    if depth > DEPTH or clock() > SECONDS then return nil end
    depth = depth + 1
    local mine = depth
    local is_good, result = pcall(one_of(deeds))
    depth = mine - 1
    return is_good and result or nil
end

-- ---- HTTP, from both sides ----

local replies = {
    function() return value(), value() end,
    function(_, res) return res:send "x" end,
    function() error(value()) end,
    function(_, res)
        local events = res:sse()
        keep(events)
        events:send "x"
        act()
    end,
    function(_, res) res:write "abc" act() end,
    function() return {a = value()} end,
    function(req) return req:json() end,
    function() end,
}

local function handle(req, res)
    for _, object in ipairs{req, res, req.headers, req.query, req.cookies, res.headers, req.params,
                         req.escaped_params} do
        keep(object)
    end
    if sessions and chance(2) then keep(sessions:open(req, res)) end
    for _ = 1, random(3) do act() end
    return one_of(replies)(req, res)
end

local function request()
    local conn = connect("127.0.0.1", server.port, {timeout = 2})
    if conn == nil then return end
    keep(conn)
    local body = chance(3) and "a=1&b=2" or '{"a": [1, 2]}'
    conn:write(("%s /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nX: y\r\nCookie: a=%%41; name=x\r\n\r\n%s"):format(
        chance(2) and "GET" or "POST", chance(3) and "r/abc?x=1" or "h", #body,
        body:sub(1, chance(4) and 3 or -1)))
    if not chance(3) then conn:read("a", 0.05) end
    if chance(2) then conn:close() end
end

-- ---- What happens ----

-- Finalizers run wherever something is made.
local function collect_all_the_time()
    local function again()
        setmetatable({}, {__gc = function()
            again()
            if chance(40) and depth < 3 then act() end
        end})
    end
    collectgarbage("incremental", 4, 1000, seed % 4 == 0 and 30 or 8)
    collectgarbage()
    again()
end

local main = this_task()
local function cancel_some()
    for _, other in ipairs(all_tasks()) do
        if other ~= main and other ~= this_task() and chance(3) then other:cancel() end
    end
end

local ways = {}
add(ways, 5, function() start(function() act() end) end)
add(ways, 1, function() start(request) end)
add(ways, 1, function() act() end)
add(ways, 1, function() start(act) sleep(0) end)
add(ways, 1, function() collectgarbage "step" end)
add(ways, 1, function() sleep(random() / 500) end)

server = http.serve{port = 0, ip = "127.0.0.1", connections = 50,
                    handler = http.router():get("/r/{id}", handle):any("/h", handle)}
local socket = assert(udp.open("127.0.0.1", 0))
guard(socket.sendto, 3, is_address)
after(SECONDS * 1.5, function() os.exit(7, true) end)
for _ = 1, steps // 10 do act() end
if seed % 2 == 0 then collect_all_the_time() end
local is_over = false
start(function()
    local over <close> = setmetatable({}, {__close = function() is_over = true end})
    for i = 1, steps do
        depth = 0
        one_of(ways)()
        if i % 50 == 0 then cancel_some() end
    end
end)
for _ = 1, SECONDS * 100 do
    if is_over then break end
    sleep(0.01)
end
print "the end"
if chance(2) then os.exit(7, chance(2)) end
error "the end"
