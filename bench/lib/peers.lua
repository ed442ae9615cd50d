-- SPDX-License-Identifier: MIT
--
-- What: lists the servers that are measured, ours and those of other projects, and the services
-- that they play.
-- Place: rows name them; bench.lua starts them. Their configurations and twin programs are in
-- bench/peers/, each with the reasons for its settings; docs/benchmarks.md says why they are fair.
--
-- A peer: name; title; needs: programs; package: the Debian package that contains them; missing():
-- nil, or why the peer cannot be measured on this machine; version: a command that prints the
-- version in its first line; serves: a set of services; start(context) -> server; servers.lua
-- describes the context.
--
-- A service is a request, and the reply that each peer gives that plays the service: check.lua
-- compares the replies, byte by byte if the service has a `body`.

local servers = require "servers"

local peers = {}

local MODULES = "/usr/lib/nginx/modules/"
local SHARE = "/usr/share/lua/5.1/"
local DESCRIPTORS_MAX = 20000 -- the assumed hard limit of a process

-- ---- Services ----

local GREETING = "Hello, World!\n"
local POSTED = ("0123456789"):rep(10000) -- the body of an upload

peers.services = {
    hello = {target = "/", body = GREETING},
    -- This service speaks HTTP/1.0 but leaves connections open.
    ["2010"] = {target = "/", body = "Hello World\n\r\n", is_old = true},
    json = {target = "/users/42", fields = {'"active":true', '"id":42', '"name":"Ann"'}},
    random = {target = "/random?number=8", pattern = "^%d$", once = true},
    echo = {target = "/echo", post = POSTED, body = POSTED},
    file = {target = "/page.html"}, -- any file below root
    proxy = {target = "/", body = GREETING},
    tls = {target = "/", body = GREETING, is_tls = true},
    generate = {target = "/", pattern = "^" .. ("[%w]"):rep(50), length = 108000},
    redis = {target = "/", pattern = "^%l+$", length = 100000},
    sort = {target = "/1"},
}

-- ---- Small things ----

local function exists(path)
    local file <close> = io.open(path)
    return file ~= nil
end

local function is_root()
    local file <close> = assert(io.open("/proc/self/status"))
    return file:read("a"):find("\nUid:%s+0%s") ~= nil
end

local function write_file(path, text)
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    return path
end

-- Write the greeting to a file, for servers that cannot have it in their configuration.
local function write_greeting(context)
    return write_file(context.scratch .. "/greeting", GREETING)
end

-- Spawn a server, and wait until its port is open. options.says: the server prints a line when its
-- last worker listens.
local function launch(context, words, options)
    local proc = context.spawn(words, options)
    if options and options.says then
        local line = proc:line(20)
        if not line then
            error(("%s ended: %s"):format(words[1], proc:errors()), 0)
        end
    else
        context.wait_ready(proc)
    end
    return context.server(proc)
end

-- Spawn a process for each worker; all of them share one port.
local function launch_each(context, words)
    local procs = {}
    for i = 1, context.workers do
        procs[i] = context.spawn(words)
        if not procs[i]:line(20) then
            error(("%s ended: %s"):format(words[1], procs[i]:errors()), 0)
        end
    end
    return context.server(table.unpack(procs))
end

local SAYS = {says = true}

-- ---- Ours ----

-- A limit program sends one fixed reply. It counts pipelined requests by their length.
local function start_limit(context)
    local words = {wire.program("bench/limit-server"), "-p", tostring(context.port)}
    local load = context.row and context.row.load or {}
    local function add(...)
        table.move({...}, 1, select("#", ...), #words + 1, words)
    end
    if context.service == "random" then
        add("-l", "1", "-b", "4", "-w", "1")
    elseif context.service == "file" then
        add("-l", tostring(#load.body))
    else
        add("-l", tostring(#GREETING))
    end
    if load.depth and load.depth > 1 then
        local request = ("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n")
            :format(load.target or "/", context.port)
        add("-r", tostring(#request))
    end
    if context.keep_alive then
        add("-k")
    end
    if context.workers > 1 then
        add("-s")
    end
    return launch_each(context, words)
end

local function start_httpd(context)
    local words = {wire.program("sxe-httpd"), "-p", tostring(context.port),
                   "-c", tostring(context.connections), "--requests", "1000000000",
                   "--idle-timeout", "3600"}
    if context.service == "file" then
        table.move({"-r", context.root}, 1, 2, #words + 1, words)
    end
    return launch(context, words)
end

local httpd_scripts = {hello = "bench/lua/hello.lua", json = "bench/lua/router.lua",
                       echo = "bench/lua/echo.lua", random = "examples/lua/random.lua"}

local function start_httpd_lua(context)
    return launch(context, {
        wire.program("sxe-httpd"), "-p", tostring(context.port), "-c",
        tostring(context.connections), "--requests", "1000000000", "--idle-timeout", "3600",
        "--lua", httpd_scripts[context.service]})
end

local twin_handlers = {hello = "hello", json = "router", ["2010"] = "2010"}

local function start_twin(context)
    return launch(context, {wire.program("bench/lua-twins"), tostring(context.port),
                            twin_handlers[context.service]})
end

local function start_twin_lua(context)
    local script = context.service == "2010" and "bench/lua/2010.lua"
                   or httpd_scripts[context.service]
    return launch(context, {wire.program("bench/lua-twins"), tostring(context.port), script})
end

-- Start sxe-httpd with worker processes. While connections are opened, a worker without a CPU
-- leaves its share to the others, so each has room for more than its share. In S4 a connection
-- sends nothing until all are open, which may take longer than the usual --header-timeout. more:
-- further arguments.
local function start_workers(context, more)
    local each = math.min(math.ceil(context.connections / context.workers * 2) + 64,
                          DESCRIPTORS_MAX - 200)
    local words = {wire.program("sxe-httpd"), "-w", tostring(context.workers), "-p",
                   tostring(context.port), "-c", tostring(each), "--requests", "1000000000",
                   "--idle-timeout", "3600", "--header-timeout", "3600"}
    table.move(more, 1, #more, #words + 1, words)
    return launch(context, words)
end

local function start_httpd_workers(context)
    return start_workers(context, {})
end

-- Start one worker, with metrics or a log if the peer is named so.
local function start_httpd_worker(context, name)
    local more = {
        ["sxe-httpd-worker"] = {},
        ["sxe-httpd-metrics"] = {"--admin", context.scratch .. "/admin"},
        ["sxe-httpd-log"] = {"--access-log", context.scratch .. "/access.log"},
    }
    return start_workers(context, more[name])
end

local function start_httpd_workers_lua(context)
    local what = {
        hello = {"bench/lua/hello.lua"},
        generate = {"bench/lua/generate.lua", "--", context.scratch},
        redis = {"bench/lua/redis.lua", "--", tostring(context.redis_port)},
        sort = {"bench/lua/sort.lua", "--", context.root},
    }
    return start_workers(context, {"--lua", table.unpack(what[context.service])})
end

-- The text of S5 comes of one call of the library, not of a loop in Lua.
local function start_httpd_workers_random_text(context)
    return start_workers(context, {"--lua", "bench/lua/generate-random-text.lua", "--",
                                   context.scratch})
end

-- ---- nginx ----

-- nginx closes idle connections when fewer than a sixteenth of its places are free.
local function nginx_places(context)
    local each = math.ceil(context.connections / context.workers * 1.05)
    return math.min(each + each // 8 + 64, DESCRIPTORS_MAX - 50)
end

local function start_nginx(context)
    local several = context.workers > 1
    local path = context.fill("bench/peers/nginx/nginx.conf", {
        PLACES = nginx_places(context), MASTER = several and "on" or "off",
        REUSEPORT = several and " reuseport" or ""})
    return launch(context, {wire.has("nginx"), "-c", path})
end

-- For files, the two configurations of nginx differ only in tcp_nopush.
local NGINX_NOPUSH = {["nginx-defaults"] = "off", ["nginx-debian"] = "on"}

local function start_nginx_defaults(context, name)
    local path = context.fill("bench/peers/nginx/defaults.conf",
                              {PLACES = nginx_places(context), NOPUSH = NGINX_NOPUSH[name]})
    return launch(context, {wire.has("nginx"), "-c", path})
end

local function start_nginx_lua(context)
    local path = context.fill("bench/peers/nginx/lua.conf",
                              {PLACES = nginx_places(context), MODULES = MODULES, SHARE = SHARE})
    return launch(context, {wire.has("nginx"), "-c", path})
end

local function nginx_lua_available()
    if exists(MODULES .. "ngx_http_lua_module.so") then
        return true
    end
    return nil, "nginx has no Lua module (package libnginx-mod-http-lua); "
                .. "make bench-deps installs it"
end

-- ---- Other servers ----

local function start_h2o(context)
    local root, index = context.root, "page.html"
    if context.service == "hello" then
        write_greeting(context)
        root, index = context.scratch, "greeting"
    end
    local path = context.fill("bench/peers/h2o/h2o.conf", {
        ROOT = root, INDEX = index, USER = is_root() and "user: root" or ""})
    return launch(context, {wire.has("h2o"), "-m", "worker", "-c", path})
end

local function start_lighttpd(context)
    local root, index = context.root, "page.html"
    if context.service == "hello" then
        write_greeting(context)
        root, index = context.scratch, "greeting"
    end
    local path = context.fill("bench/peers/lighttpd/lighttpd.conf", {
        ROOT = root, INDEX = index, CONNECTIONS = context.connections + 16,
        DESCRIPTORS = math.min(context.connections * 2 + 64, DESCRIPTORS_MAX)})
    return launch(context, {wire.has("lighttpd"), "-D", "-f", path})
end

local function start_haproxy(context)
    return launch(context, {wire.has("haproxy"), "-f",
                            context.fill("bench/peers/haproxy/haproxy.cfg", {})})
end

-- ---- Reverse proxies ----

-- The port of the proxy's upstream, the limit program: of the row's own, or of one that starts here.
local function backend_of(context)
    local port = context.backend or servers.free_port()
    if not context.backend then
        local proc = context.spawn{wire.program("bench/limit-server"), "-p", tostring(port)}
        assert(proc:line(20), "the upstream did not start")
        context.command = nil
    end
    return port
end

local function start_httpd_proxy(context)
    local site = write_file(context.scratch .. "/site.lua", ([[return {
        upstreams = { app = { servers = "127.0.0.1:%d", idle = %d } },
        routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(
        backend_of(context), context.connections))
    return launch(context, {wire.program("sxe-httpd"), "-p", tostring(context.port), "-c",
                            tostring(context.connections), "--requests", "1000000000",
                            "--idle-timeout", "3600", "--config", site})
end

local function start_nginx_proxy(context)
    local path = context.fill("bench/peers/nginx/proxy.conf",
                              {PLACES = 2 * nginx_places(context),
                               BACKEND = backend_of(context)})
    return launch(context, {wire.has("nginx"), "-c", path})
end

local function start_haproxy_proxy(context)
    return launch(context, {wire.has("haproxy"), "-f",
                            context.fill("bench/peers/haproxy/proxy.cfg",
                                         {PLACES = 16 * context.connections,
                                          BACKEND = backend_of(context)})})
end

-- ---- Go ----

local go_program -- the compiled program; nil: not compiled yet

-- Compile Go's server, once, before the first round. The directory stays until the end.
function peers.prepare(directory)
    if not wire.has("go") then
        return
    end
    local program = directory .. "/go-server"
    -- Without a module nothing is downloaded; "local" is the installed toolchain, and no other.
    local proc <close> = wire.spawn{wire.has("go"), "build", "-o", program,
                                    "bench/peers/go/server.go",
                                    env = {GOTOOLCHAIN = "local", GOFLAGS = "", CGO_ENABLED = "0"}}
    if proc:wait(300) == 0 then
        go_program = program
    else
        io.stderr:write("bench: Go's server cannot be compiled: ", proc:errors())
    end
end

local function go_available()
    if go_program then
        return true
    end
    return nil, "its server was not compiled"
end

local function start_go(context)
    local service = context.service == "file" and "files" or context.service
    local words = {go_program}
    local shares = context.workers > 1 and context.connections > DESCRIPTORS_MAX
    if shares then
        words[2] = "-shared"
    end
    table.move({tostring(context.port), service, context.root}, 1, 3, #words + 1, words)
    return shares and launch_each(context, words) or launch(context, words, SAYS)
end

-- ---- Node ----

-- How Node reads the files of S8. Its cluster reads synchronously, which was published as the
-- fastest way: a worker has nothing else to do.
local NODE_SORTS = {["node-callbacks"] = "callbacks", ["node-sync"] = "sync",
                    ["node-cluster"] = "sync"}

local function start_node(context, name)
    local port, service = tostring(context.port), context.service
    if service == "file" then
        return launch(context, {wire.has("node"), "bench/peers/node/static.js", port,
                                context.root})
    end
    local directory = context.scratch
    if service == "sort" then
        service, directory = NODE_SORTS[name], context.root
    end
    return launch(context, {wire.has("node"), "bench/peers/node/services.js", port, service,
                            tostring(context.workers), directory},
                  {says = true, env = {REDIS_PORT = tostring(context.redis_port or 0)}})
end

local function start_node_net(context)
    return launch(context, {wire.has("node"), "bench/peers/node/net.js",
                            tostring(context.port)}, SAYS)
end

-- ---- Redis, and the servers that ask it ----

-- Start a Redis server without persistence, on the CPU of the clients. Returns
-- {port, socket, stop()}.
function peers.start_redis(house)
    local server = servers.start(house, {start = function(context)
        local proc = context.spawn({
            wire.has("redis-server"), "--port", tostring(context.port), "--bind", "127.0.0.1",
            "--save", "", "--appendonly", "no", "--dir", context.scratch, "--unixsocket",
            context.scratch .. "/redis"}, {cpu = house.client_cpu})
        context.wait_ready(proc)
        local started = context.server(proc)
        started.socket = context.scratch .. "/redis"
        return started
    end}, {})
    return server
end

-- ---- TLS ----

-- The pairs of certificate and key, by kind of key: made when a row first asks for one.
local pairs_made = {}

local NEW_KEY = {ec = "-newkey ec -pkeyopt ec_paramgen_curve:P-256", rsa = "-newkey rsa:2048"}

-- Two files: the self-signed certificate of 127.0.0.1, and its key. The certificate's file has the
-- key, too, because HAProxy wants them in one.
local function pair_of(context)
    local kind = context.key or "ec"
    local path = context.scratch:gsub("/[^/]*$", "") .. "/" .. kind
    if not pairs_made[path] then
        assert(os.execute(("openssl req -x509 %s -nodes -keyout %s.key -out %s.crt -days 30 "
            .. "-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 "
            .. "2>/dev/null && cat %s.key >>%s.crt"):format(NEW_KEY[kind], path, path, path, path)),
            "openssl makes no certificate")
        pairs_made[path] = true
    end
    return path .. ".crt", path .. ".key"
end

local function start_limit_tls(context)
    local words = {wire.program("bench/limit-tls-server"), "-p", tostring(context.port),
                   pair_of(context)}
    if context.is_idle then
        table.insert(words, 2, "-m")
    elseif context.row and context.row.load and context.row.load.fresh then
        table.insert(words, 2, "-1")
    end
    return launch_each(context, words)
end

local function start_httpd_tls(context)
    local certificate, key = pair_of(context)
    local words = {wire.program("sxe-httpd"), "-p", tostring(context.port), "-c",
                   tostring(context.connections), "--requests", "1000000000", "--idle-timeout",
                   "3600", "--tls-cert", certificate, "--tls-key", key}
    if context.service == "tls-file" then
        table.move({"-r", context.root}, 1, 2, #words + 1, words)
    end
    return launch(context, words)
end

local function start_nginx_tls(context)
    local certificate, key = pair_of(context)
    local path = context.fill("bench/peers/nginx/tls.conf", {
        PLACES = nginx_places(context), CERTIFICATE = certificate, KEY = key})
    return launch(context, {wire.has("nginx"), "-c", path})
end

local function start_h2o_tls(context)
    local root, index = context.root, "page.html"
    if context.service ~= "tls-file" then
        write_greeting(context)
        root, index = context.scratch, "greeting"
    end
    local certificate, key = pair_of(context)
    local path = context.fill("bench/peers/h2o/tls.conf", {
        ROOT = root, INDEX = index, USER = is_root() and "user: root" or "",
        CERTIFICATE = certificate, KEY = key})
    return launch(context, {wire.has("h2o"), "-m", "worker", "-c", path})
end

local function start_haproxy_tls(context)
    return launch(context, {wire.has("haproxy"), "-f", context.fill(
        "bench/peers/haproxy/tls.cfg", {CERTIFICATE = (pair_of(context))})})
end

local function start_node_tls(context)
    local certificate, key = pair_of(context)
    return launch(context, {wire.has("node"), "bench/peers/node/tls.js", tostring(context.port),
                            certificate, key}, SAYS)
end

-- Why rows about TLS cannot be measured on this machine; nil: they can.
function peers.lacks_tls()
    if not pcall(wire.program, "bench/limit-tls-server") then -- it raises an error for none
        return "built without OpenSSL 3 (package libssl-dev)"
    elseif not wire.has("openssl") then
        return "openssl is not installed (package openssl), which makes the certificates"
    end
    return nil
end

local function has_tls()
    local why = peers.lacks_tls()
    return not why, why
end

-- ---- The list ----

-- Seconds of load until Node has compiled all that it will compile; after a third of a second it
-- reaches half its rate.
local NODE_WARM_UP = 1.5

local function set(...)
    local result = {}
    for _, name in ipairs{...} do
        result[name] = true
    end
    return result
end

-- Why a peer cannot be measured on this machine; nil: it can.
local function missing(peer)
    for _, program in ipairs(peer.needs) do
        if not wire.has(program) then
            return ("%s is not installed (package %s); make bench-deps installs it")
                :format(program, peer.package)
        end
    end
    local available, why = true, nil
    if peer.available then
        available, why = peer.available()
    end
    return not available and why or nil
end

local ours = wire.program("sxe-httpd") .. " --version"
local node_version = {needs = {"node"}, package = "nodejs", version = "node --version"}

local function add(peer, defaults)
    for name, value in pairs(defaults or {}) do
        peer[name] = value
    end
    peer.needs = peer.needs or {}
    peer.title = peer.title or peer.name
    local start = peer.start
    peer.start = function(context) return start(context, peer.name) end
    peer.missing = function() return missing(peer) end
    peers[#peers + 1] = peer
end

add{name = "limit", title = "limit program", serves = set("hello", "random", "file"),
    start = start_limit, version = "echo ours: raw epoll, no parsing"}
add{name = "sxe-httpd", serves = set("hello", "file"), start = start_httpd, version = ours}
add{name = "sxe-httpd-lua", title = "sxe-httpd --lua", serves = set("hello", "json", "random"),
    start = start_httpd_lua, version = ours}
add{name = "sxe-c", title = "sxe, C", serves = set("hello", "json", "2010"), start = start_twin,
    version = ours}
add{name = "sxe-lua", title = "sxe, Lua", serves = set("hello", "json", "random", "2010", "echo"),
    start = start_twin_lua, version = ours}
add{name = "sxe-httpd-workers", title = "sxe-httpd -w", serves = set("hello"),
    start = start_httpd_workers, version = ours}
for _, one in ipairs{{"worker", ""}, {"metrics", " --admin"}, {"log", " --access-log"}} do
    add{name = "sxe-httpd-" .. one[1], title = "sxe-httpd -w 1" .. one[2], serves = set("hello"),
        start = start_httpd_worker, version = ours}
end
add{name = "sxe-httpd-lua-workers", title = "sxe-httpd -w --lua",
    serves = set("hello", "generate", "redis", "sort"), start = start_httpd_workers_lua,
    version = ours}
add{name = "sxe-httpd-random-text", title = "sxe-httpd -w --lua, crypto.random_text",
    serves = set("generate"), start = start_httpd_workers_random_text, version = ours}
add{name = "nginx", needs = {"nginx"}, package = "nginx-light", version = "nginx -v 2>&1",
    serves = set("hello", "file"), start = start_nginx}
add{name = "nginx-defaults", title = "nginx, its defaults", needs = {"nginx"},
    package = "nginx-light", version = "nginx -v 2>&1", serves = set("file"),
    start = start_nginx_defaults}
add{name = "nginx-debian", title = "nginx, Debian's defaults", needs = {"nginx"},
    package = "nginx-light", version = "nginx -v 2>&1", serves = set("file"),
    start = start_nginx_defaults}
add{name = "nginx-lua", title = "nginx + Lua", needs = {"nginx"}, available = nginx_lua_available,
    package = "libnginx-mod-http-lua", version = "nginx -v 2>&1",
    serves = set("hello", "json", "random", "echo"), start = start_nginx_lua}
add{name = "h2o", needs = {"h2o"}, package = "h2o", version = "h2o --version",
    serves = set("hello", "file"), start = start_h2o}
add{name = "lighttpd", needs = {"lighttpd"}, package = "lighttpd", version = "lighttpd -v",
    serves = set("hello", "file"), start = start_lighttpd}
add{name = "haproxy", title = "HAProxy", needs = {"haproxy"}, package = "haproxy",
    version = "haproxy -v", serves = set("hello"), start = start_haproxy}
add{name = "sxe-httpd-proxy", title = "sxe-httpd", start = start_httpd_proxy, serves = set("proxy"),
    version = ours}
add{name = "nginx-proxy", title = "nginx", needs = {"nginx"}, package = "nginx-light",
    version = "nginx -v 2>&1", serves = set("proxy"), start = start_nginx_proxy}
add{name = "haproxy-proxy", title = "HAProxy", needs = {"haproxy"}, package = "haproxy",
    version = "haproxy -v", serves = set("proxy"), start = start_haproxy_proxy}
add{name = "go", title = "Go net/http", needs = {"go"}, package = "golang-go",
    version = "go version", available = go_available,
    serves = set("hello", "json", "random", "file", "echo"), start = start_go}
local function add_node(peer)
    peer.start = peer.start or start_node
    peer.warm_up = NODE_WARM_UP
    add(peer, node_version)
end

add_node{name = "node", title = "Node http",
         serves = set("hello", "json", "random", "file", "generate", "redis", "echo")}
add_node{name = "node-net", title = "Node net", start = start_node_net, serves = set("hello")}
add_node{name = "node-cluster", title = "Node cluster",
         serves = set("hello", "generate", "redis", "sort")}
add_node{name = "node-callbacks", title = "Node, callbacks", serves = set("sort")}
add_node{name = "node-sync", title = "Node, sync", serves = set("sort")}

-- Peers over TLS are called as those without, and have names that end in -tls.
local function add_tls(peer)
    peer.name, peer.available = peer.name .. "-tls", has_tls
    peer.serves = peer.serves or set("tls")
    add(peer)
end

add_tls{name = "limit", title = "limit program", start = start_limit_tls,
        version = "echo ours: raw epoll and OpenSSL, no parsing"}
add_tls{name = "sxe-httpd", title = "sxe-httpd", serves = set("tls", "tls-file"),
        start = start_httpd_tls, version = ours}
add_tls{name = "nginx", title = "nginx", needs = {"nginx"}, package = "nginx-light",
        version = "nginx -v 2>&1", serves = set("tls", "tls-file"), start = start_nginx_tls}
add_tls{name = "h2o", title = "h2o", needs = {"h2o"}, package = "h2o", version = "h2o --version",
        serves = set("tls", "tls-file"), start = start_h2o_tls}
add_tls{name = "haproxy", title = "HAProxy", needs = {"haproxy"}, package = "haproxy",
        version = "haproxy -v", start = start_haproxy_tls}
add_tls{name = "node", title = "Node https", needs = {"node"}, package = "nodejs",
        version = "node --version", start = start_node_tls, warm_up = NODE_WARM_UP}

function peers.find(name)
    for _, peer in ipairs(peers) do
        if peer.name == name then
            return peer
        end
    end
end

return peers
