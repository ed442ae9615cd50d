-- SPDX-License-Identifier: MIT
--
-- A running sxe-http, what it reports, and the scripted server it talks to.

local load = {}
load.__index = load

-- A reply with this body, as a server that keeps the connection sends it.
function load.reply(body, status)
    return ("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s"):format(status or "200 OK", #body, body)
end

-- Starts sxe-http against a listener of the script, or a port, or with nothing but the options.
function load.start(target, ...)
    local command = {wire.program("sxe-http"), ...}
    if target then
        local port = type(target) == "number" and target or target:port()
        table.insert(command, 2, "-p")
        table.insert(command, 3, tostring(port))
    end
    if not table.concat(command, " "):find("--timeout", 1, true) then -- so that a busy machine causes none
        table.insert(command, "--timeout")
        table.insert(command, "120")
    end
    return setmetatable({proc = wire.spawn(command)}, load)
end

-- Waits for the end; what was reported is then in the fields.
function load:finish(seconds)
    local output = self.proc:output()
    self.status = self.proc:wait(seconds or 20)
    self.errors = self.proc:errors()
    self.output = output
    self.opened, self.wanted = self:numbers("opened%s+(%d+)/(%d+) connections in %d")
    self.queries, self.ok, self.failed =
        self:numbers("requests%s+(%d+)%s+ok%s+(%d+)%s+errors%s+(%d+)")
    self.skipped = tonumber(output:match("\nskipped%s+(%d+) of %d+") or 0)
    -- A machine that is busy with other tests makes a good result a suspect one.
    self.is_suspect = self.status == 4 and output:find("RESULT SUSPECT: ", 1, true) ~= nil
    check(not self.errors:find("Sanitizer"), self.errors)
    return self
end

function load:numbers(pattern)
    local found = table.pack(self.output:match(pattern))
    check(found[1], ("%q is not in %q, %q"):format(pattern, self.output, self.errors))
    for i = 1, found.n do
        found[i] = tonumber(found[i])
    end
    return table.unpack(found, 1, found.n)
end

-- How many errors of this kind there were, "refused" for example; 0 where it is not named.
function load:count(kind)
    return tonumber(self.output:match(kind .. "%s+(%d+)") or self.output:match("(%d+)%s+" .. kind)
                    or 0)
end

function load:check_report(expected)
    for _, name in ipairs{"status", "opened", "queries", "ok", "failed", "skipped"} do
        if name == "status" and expected.status == 0 and self.is_suspect then
            check(self.failed == 0, self.output)
        elseif expected[name] then
            equal(self[name], expected[name], name .. " of " .. self.output)
        end
    end
    if expected.kind then
        check(self:count(expected.kind) > 0, ("no %q in %q"):format(expected.kind, self.output))
    end
end

-- Accepts `count` connections.
function load.accept(listener, count)
    local socks = {}
    for i = 1, count do
        socks[i] = listener:accept(20)
    end
    return socks
end

-- One connection of one client, served: serve(sock, i) is called for each request that comes, and
-- the report has to be as expected.
function load.check_one(queries, serve, expected, ...)
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-n", tostring(queries), ...)
    local sock <close> = listener:accept(20)
    for i = 1, queries do
        sock:recv_until("\r\n\r\n")
        if serve(sock, i) == "end" then
            break
        end
    end
    client:finish():check_report(expected)
end

return load
