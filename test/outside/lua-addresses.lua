-- SPDX-License-Identifier: MIT
--
-- Names with several addresses in tcp.connect, by docs/lua-handlers.md. A hosts file of the test's own, which a mount puts
-- before the system's, has a name with the addresses 127.0.0.1 and 127.0.0.2, in this order after getaddrinfo(3).

if not os.execute "unshare --mount true 2>/dev/null" then
    print("skipped: names with several addresses, because this user cannot mount a hosts file")
    return
end

local RUN <const> = [[mount --bind "$1" /etc/hosts && shift && exec "$@"]]

local SCRIPT <const> = [[
local tcp, task = require "sxe.tcp", require "sxe.task"
local server = tcp.serve("127.0.0.2", %d, function(conn) conn:read "a" end)
task.start(function()
  task.sleep(0)
  local conn, why = tcp.connect("two.example", server.port)
  print(conn and conn.peer_addr or why)
  os.exit(0)
end)
]]

-- The address of two.example that a script connects to, at this port.
local function connected_at(port)
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write("127.0.0.1 two.example\n127.0.0.2 two.example\n")
    file:close()
    local proc <close> = wire.spawn{"unshare", "--mount", "sh", "-c", RUN, "sh", path, wire.program("sxe-lua"), "-e",
        SCRIPT:format(port)}
    local line = proc:line(60)
    os.remove(path)
    check(line, proc:errors())
    return line
end

-- promise: docs/lua-handlers.md: the next attempt begins 250 ms after the last one, or at once when one has failed.
test("an address that refuses is passed over", function()
    equal(connected_at(wire.free_port()), "127.0.0.2")
end)

-- Its backlog is full, so the kernel ignores further connections.
local DEAF <const> = [[
import signal, socket, sys
server = socket.socket()
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen(0)
client = socket.create_connection(server.getsockname())
print("deaf", flush=True)
signal.pause()
]]

-- promise: docs/lua-handlers.md: The first attempt that connects wins, and the others are closed.
test("an address that never replies is passed over", function()
    if not os.execute "python3 -c '' 2>/dev/null" then
        print("skipped: an address that never replies, because python3 is not installed")
        return
    end
    local port = wire.free_port()
    local deaf <close> = wire.spawn{"python3", "-c", DEAF, tostring(port)}
    equal(deaf:line(60), "deaf", deaf:errors())
    equal(connected_at(port), "127.0.0.2")
end)

-- Two addresses that are deaf, and a third that is not.
local DEAF_TWO <const> = [[
import signal, socket, sys
kept = []
for ip, backlog in ("127.0.0.1", 0), ("127.0.0.2", 0), ("127.0.0.3", 5):
    server = socket.socket()
    server.bind((ip, int(sys.argv[1])))
    server.listen(backlog)
    kept.append(server)
    if backlog == 0: kept.append(socket.create_connection(server.getsockname()))
print("deaf", flush=True)
signal.pause()
]]

local NEAR_LIMIT <const> = [[
local tcp, task = require "sxe.tcp", require "sxe.task"
local PORT <const> = %d
task.start(function()
  local racing = task.start(function() return select(2, tcp.connect("two.example", PORT, {timeout = 3})) end)
  local names = {"127.0.0.3", "two.example"}
  task.sleep(1) -- the race has both sockets by then, but where the machine is slow
  for _, name in ipairs(names) do
    local conn, why = tcp.connect(name, PORT, {timeout = 1})
    print(conn and conn.peer_addr or why)
    if conn then conn:close() end
  end
  print(racing:join())
  os.exit(0)
end)
]]

-- promise: docs/lua-handlers.md: If another task needs a socket, all attempts but the first give theirs up.
test("a race of addresses takes no socket that another connection needs", function()
    if not os.execute "python3 -c '' 2>/dev/null" then
        print("skipped: races near the limit, because python3 is not installed")
        return
    end
    local port, path = wire.free_port(), os.tmpname()
    local deaf <close> = wire.spawn{"python3", "-c", DEAF_TWO, tostring(port)}
    equal(deaf:line(60), "deaf", deaf:errors())
    local file <close> = assert(io.open(path, "w"))
    file:write("127.0.0.1 two.example\n127.0.0.2 two.example\n")
    file:close()
    local proc <close> = wire.spawn{"unshare", "--mount", "sh", "-c", RUN, "sh", path, wire.program("sxe-lua"),
        "--sockets", "2", "-e", NEAR_LIMIT:format(port)}
    equal(proc:line(60), "127.0.0.3", proc:errors())
    equal(proc:line(60), "timeout", proc:errors())
    equal(proc:line(60), "timeout", proc:errors())
    os.remove(path)
end)
