-- SPDX-License-Identifier: MIT
--
-- Names in sxe.udp, on machines whose hosts file lists ::1 or 127.0.0.1 first.

-- promise: docs/lua-handlers.md: a name is resolved each time, to an address of the socket's own family.
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
