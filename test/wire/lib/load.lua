-- SPDX-License-Identifier: MIT
--
-- A running sxe-http, its report, and the server that a test plays for it.

local load = {}
load.__index = load

-- A reply with this body, without Connection: close.
function load.reply(body, status)
    return ("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s"):format(status or "200 OK", #body, body)
end

-- Start sxe-http against a listener of the test, or a port; if `target` is nil, with the options only.
function load.start(target, ...)
    local command = {wire.program("sxe-http"), ...}
    if target then
        local port = type(target) == "number" and target or target:port()
        table.insert(command, 2, "-p")
        table.insert(command, 3, tostring(port))
    end
    if not table.concat(command, " "):find("--timeout", 1, true) then -- so that a busy machine causes no timeout
        table.insert(command, "--timeout")
        table.insert(command, "120")
    end
    return setmetatable({proc = wire.spawn(command)}, load)
end

-- Wait for the end of the run, and store its report in the fields of this object.
function load:finish(seconds)
    local output = self.proc:output()
    self.status = self.proc:wait(seconds or 20)
    self.errors = self.proc:errors()
    self.output = output
    self.opened, self.wanted = self:numbers("opened%s+(%d+)/(%d+) connections in %d")
    self.queries, self.ok, self.failed =
        self:numbers("requests%s+(%d+)%s+ok%s+(%d+)%s+errors%s+(%d+)")
    self.skipped = tonumber(output:match("\nskipped%s+(%d+) of %d+") or 0)
    -- On a machine that is busy with other tests, a good result may be suspect.
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

-- The number of errors of this kind, such as "refused", in the report; 0 if the report does not list the kind.
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

-- Run sxe-http with one connection, call serve(sock, i) for each request, and check the report. serve returns "end" to
-- stop serving.
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
