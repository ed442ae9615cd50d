-- SPDX-License-Identifier: MIT
--
-- Real redis-servers for tests, in a directory of their own; and commands that a test sends while they die.

local httpd = require "httpd"

local servers = {}

-- Whether there are redis-server and redis-cli. If not, prints that `what` is skipped.
function servers.are_installed(what)
    if wire.has "redis-server" and wire.has "redis-cli" then return true end
    print("skipped: " .. what .. ", because redis-server or redis-cli is not installed")
    return false
end

local directory

-- The directory of all servers of this program.
function servers.directory()
    if not directory then
        directory = os.tmpname()
        os.remove(directory)
        assert(os.execute("mkdir " .. directory))
    end
    return directory
end

function servers.remove_files()
    os.execute("rm -rf " .. servers.directory())
    directory = nil
end

local function read(path)
    local file <close> = io.open(path)
    return file and file:read("a") or ""
end

-- Start a server. Redis cannot choose free ports itself, so this tries two that were free a moment ago. options(path,
-- port, other) returns the command's options after the log's; `path` is the server's own directory. Its log says `ready`.
function servers.start(name, options, ready)
    ready = ready or "Ready to accept"
    for _ = 1, 20 do
        local one, two = wire.listen("127.0.0.1", 0), wire.listen("127.0.0.1", 0)
        local port, other = one:port(), two:port()
        local path = servers.directory() .. "/" .. name .. "-" .. port
        one:close()
        two:close()
        assert(os.execute("mkdir " .. path))
        local command = {wire.has "redis-server", table.unpack(options(path, port, other))}
        table.move({"--bind", "127.0.0.1", "--dir", path, "--logfile", path .. "/log"}, 1, 6, #command + 1, command)
        local proc = wire.spawn(command)
        local said = ""
        httpd.wait_until(function()
            said = read(path .. "/log")
            return said:find(ready, 1, true) or said:find("Failed listening", 1, true) or
                said:find("Could not create", 1, true)
        end, name .. " listens, or cannot")
        if said:find(ready, 1, true) then
            return {proc = proc, port = port, path = path, command = "'" .. table.concat(command, "' '") .. "'"}
        end
        proc:signal("KILL")
    end
    error("no ports are free")
end

-- What redis-cli prints; it must succeed.
function servers.cli(password, ...)
    local proc <close> = wire.spawn{wire.has "redis-cli", "-a", password, "--no-auth-warning", ...}
    local output = proc:output(120)
    equal(proc:wait(120), 0, "redis-cli: " .. output)
    return output
end

-- Wait until a master has a replica that has its data.
function servers.await_replica(port)
    httpd.wait_until(function()
        return servers.cli("secret", "-p", tostring(port), "info", "replication"):find("state=online", 1, true)
    end, "the replica has its master's data")
end

-- The text of a script that calls a client `db`: kinds of numbered commands, each of which returns its number; their keys
-- have one slot or group.
servers.KINDS = [[
local wrong, good, cut, failed, number = 0, 0, 0, 0, 0
local function echo(to, key, id) return to:eval("return ARGV[1]", 1, key, id) end
local kinds = {
  function(id) return echo(db, "a" .. id, id) end,
  function(id)
    local list, why = echo(echo(db:pipeline(), "b" .. id, "1" .. id), "c" .. id, id):exec()
    if not list then return nil, why end
    for i = 1, 2 do if type(list[i]) == "table" then return nil, list[i].error end end
    return list[1] == "1" .. id and list[2] or list[1]
  end,
  function(id)
    local list, why = db:transaction(function(t)
      local said = echo(t, "d" .. id, "2" .. id)
      if said and said ~= "2" .. id then error("wrong " .. said) end
      t:multi()
      echo(t, "d" .. id, id)
    end, { watch = { "d" .. id } })
    return list and list[1], why
  end,
  function(id)
    local n, why = db:incr("once" .. id)
    return n == 1 and id or n, why
  end,
}
]]

return servers
