-- SPDX-License-Identifier: MIT
--
-- examples/echo.c with lines of any length.

local function start(port)
    return wire.spawn{wire.program("examples/echo"), tostring(port)}
end

local function connect(port)
    local good, sock
    repeat good, sock = pcall(wire.connect, "127.0.0.1", port) until good
    return sock
end

-- promise: examples/echo.c: A line that fills the library's buffer (16 KiB) is echoed in parts.
test("lines are echoed whole, whatever their length", function()
    local port = wire.free_port()
    local proc <close> = start(port)
    local sock <close> = connect(port)
    for _, length in ipairs{0, 1, 16382, 16383, 16384, 16385, 100000, 3, 16384} do
        local line = ("x"):rep(length) .. "\n"
        sock:send(line)
        equal(#sock:recv(#line), #line, length)
    end
    check(proc:pid())
end)

-- promise: examples/echo.c: Echo whole lines.
test("lines that come together with the end of the input are all echoed", function()
    local port = wire.free_port()
    local proc <close> = start(port)
    for _, number in ipairs{1, 2, 10, 20000} do
        local sock <close> = connect(port)
        local lines = ("123456789\n"):rep(number)
        sock:send(lines)
        sock:shutdown()
        equal(#sock:recv_all(), #lines, number)
    end
    check(proc:pid())
end)

-- promise: docs/sxe.md: If `sxe_listen` or `sxe_connect` fails, a line of the log names the address.
test("the log names an address that is in use", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local proc <close> = start(listener:port())
    equal(proc:wait(60), 1)
    check(proc:errors():find("cannot listen on 127.0.0.1 port " .. listener:port() .. ": Address already in use", 1, true),
          proc:errors())
end)
