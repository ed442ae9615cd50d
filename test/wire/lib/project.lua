-- SPDX-License-Identifier: MIT
--
-- A new directory in which programs of ours run. `local project <close> = project.start()` removes it at the end.

local project = {}
project.__index = project

local pipe <close> = io.popen "pwd"
project.root = pipe:read "l"
project.build = os.getenv "SXE_BUILD" or "build/release"
local counts = project.build:find("coverage", 1, true) and os.execute("mkdir -p " .. project.build .. "/lua")
local count = 0

function project.program(name)
    return ("%s/%s"):format(project.root, wire.program(name))
end

function project.start()
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    return setmetatable({directory = directory}, project)
end

function project:path(name)
    return self.directory .. "/" .. name
end

-- Write a file, and the folders above it.
function project:write(name, text)
    local path = self:path(name)
    assert(os.execute("mkdir -p " .. path:match("^.*/")))
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
end

function project:read(name)
    local file <close> = io.open(self:path(name))
    return file and file:read("a")
end

-- Run a shell command in the directory, with `env` besides SXE_LUA and SXE_HTTPD, the programs under test. Returns its
-- exit status, output and errors.
function project:sh(command, env)
    env = env or {}
    env.SXE_LUA, env.SXE_HTTPD = project.program("sxe-lua"), project.program("sxe-httpd")
    local proc <close> = wire.spawn{"sh", "-c", ("cd '%s' && %s"):format(self.directory, command), env = env}
    local output = proc:output(120)
    return proc:wait(120), output, proc:errors()
end

-- Run sxe-lua in the directory; in the coverage flavour, count the lines of our own scripts, whose names are relative to
-- the root of the sources.
function project:lua(command)
    if not counts then return self:sh("$SXE_LUA " .. command) end
    count = count + 1
    local name = ("%s/lua/%s-%d.info"):format(project.build, self.directory:match("[^/]*$"), count)
    os.execute(("ln -sfn %s/apps %s/apps"):format(project.root, self.directory))
    local status, output, errors = self:sh("$SXE_LUA --coverage=.info " .. command)
    local file <close> = assert(io.open(name, "w"))
    file:write(((self:read(".info") or ""):gsub("SF:" .. self.directory:gsub("%p", "%%%0"), "SF:" .. project.root)))
    os.execute(("rm -f %s/apps %s"):format(self.directory, self:path(".info")))
    return status, output, errors
end

function project:__close()
    os.execute("rm -rf " .. self.directory)
end

return project
