-- SPDX-License-Identifier: MIT
--
-- Host names in sxe.udp, on machines whose hosts file lists ::1 first or 127.0.0.1 first.

-- promise: docs/lua-handlers.md: It resolves a name each time, to an address of the socket's own family.
test("a datagram to localhost arrives from a socket of IPv4, twice", function()
    local script = [[
        local udp, task = require "sxe.udp", require "sxe.task"
        task.start(function()
            local from, to = udp.open("127.0.0.1", 0), udp.open("127.0.0.1", 0)
            for i = 1, 2 do
                assert(from:sendto("n" .. i, "localhost", to.local_port))
                local data, ip, port = to:recvfrom()
                assert(data == "n" .. i and ip == "127.0.0.1" and port == from.local_port)
            end
            print "arrived"
            os.exit(0)
        end)
    ]]
    local proc <close> = wire.spawn{wire.program("sxe-lua"), "-e", script}
    equal(proc:line(20), "arrived", proc:errors())
end)

-- promise: docs/lua-handlers.md: A port that another socket has is refused.
test("a second socket at a port is refused, and the first goes on", function()
    local script = [[
        local udp, task = require "sxe.udp", require "sxe.task"
        task.start(function()
            local first, from = assert(udp.open("127.0.0.1", 0)), udp.open("127.0.0.1", 0)
            local second, why, code = udp.open("127.0.0.1", first.local_port)
            assert(second == nil and why:find "ddress already in use" and code == 98, why)
            assert(from:sendto("one", "127.0.0.1", first.local_port))
            assert(first:recvfrom() == "one")
            print "refused"
            os.exit(0)
        end)
    ]]
    local proc <close> = wire.spawn{wire.program("sxe-lua"), "-e", script}
    equal(proc:line(20), "refused", proc:errors())
end)

-- promise: docs/lua-handlers.md: A datagram arrives whole.
test("a datagram of any size is received as it was sent", function()
    local script = [[
        local udp, task = require "sxe.udp", require "sxe.task"
        task.start(function()
            local from, to = udp.open("127.0.0.1", 0), udp.open("127.0.0.1", 0)
            for _, n in ipairs{1, 1000, 16384, 16385, 20000, 60000, 65507} do
                local sent = ("%d,"):rep(n):gsub("%%d", n):sub(1, n)
                assert(from:sendto(sent, "127.0.0.1", to.local_port))
                assert(to:recvfrom() == sent, n)
            end
            print "whole"
            os.exit(0)
        end)
    ]]
    local proc <close> = wire.spawn{wire.program("sxe-lua"), "-e", script}
    equal(proc:line(120), "whole", proc:errors())
end)

-- promise: docs/lua-handlers.md: More bytes than a datagram can carry, 65,507 with IPv4, give `nil, message, 90`.
test("more bytes than a datagram can carry are not sent", function()
    local script = [[
        local udp, task = require "sxe.udp", require "sxe.task"
        task.start(function()
            local from, to = udp.open("127.0.0.1", 0), udp.open("127.0.0.1", 0)
            for _, n in ipairs{65508, 65535, 65536, 1000000} do
                local sent, why, code = from:sendto(("x"):rep(n), "127.0.0.1", to.local_port)
                assert(sent == nil and why and code == 90, n)
            end
            assert(select(2, to:recvfrom(0)) == "timeout")
            print "refused"
            os.exit(0)
        end)
    ]]
    local proc <close> = wire.spawn{wire.program("sxe-lua"), "-e", script}
    equal(proc:line(120), "refused", proc:errors())
end)

-- promise: docs/lua-handlers.md: If no socket is free, `tcp.connect` and `udp.open` wait for sockets that are being
-- closed, and collect garbage, before they fail.
test("sockets that were closed or forgotten make room for others", function()
    local script = [[
        local udp, task = require "sxe.udp", require "sxe.task"
        task.start(function()
            for i = 1, 100 do assert(udp.open("127.0.0.1", 0)):close() end
            local all = {}
            repeat all[#all + 1] = udp.open("127.0.0.1", 0) until not udp.open("127.0.0.1", 0)
            all = nil
            for i = 1, 300 do assert(udp.open("127.0.0.1", 0)) end
            print "opened"
            os.exit(0)
        end)
    ]]
    local proc <close> = wire.spawn{wire.program("sxe-lua"), "-e", script}
    equal(proc:line(60), "opened", proc:errors())
end)
