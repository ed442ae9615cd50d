-- SPDX-License-Identifier: MIT
-- The examples in C do what their first comment says.

local function connect(port)
    for _ = 1, 100 do
        local good, sock = pcall(wire.connect, "127.0.0.1", port)
        if good then
            return sock
        end
        wire.sleep(0.05)
    end
    error("nobody listens on port " .. port, 2)
end

local function is_taken(port)
    local good, listener = pcall(wire.listen, "127.0.0.1", port)
    if good then
        listener:close()
    end
    return not good
end

test("echo answers whole lines", function()
    local port = wire.free_port()
    local echo <close> = wire.spawn{wire.program("examples/echo"), tostring(port)}
    local sock <close> = connect(port)
    sock:send("one\ntwo\nthr")
    equal(sock:recv(8), "one\ntwo\n")
    sock:send("ee\n")
    equal(sock:recv(6), "three\n")
end)

test("pool forgets the oldest words", function()
    local pool <close> = wire.spawn{wire.program("examples/pool"), "a", "b", "c", "d", "e"}
    equal(pool:output(), "forgot a for d\nforgot b for e\n")
    equal(pool:wait(10), 0)
end)

if is_taken(9090) then
    print("skipped: the hello example, because port 9090 is in use")
else
    test("hello says hello", function()
        local hello <close> = wire.spawn{wire.program("examples/hello")}
        local sock <close> = connect(9090)
        sock:send("anything")
        equal(sock:recv(6), "hello\n")
    end)
end
