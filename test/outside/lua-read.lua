-- SPDX-License-Identifier: MIT
--
-- Which bytes a failed read of a connection returns or leaves, by docs/lua-handlers.md.

local cli = require "cli"

local TEXT = [[
local tcp, task = require "sxe.tcp", require "sxe.task"
local server = tcp.serve("127.0.0.1", 0, function(conn) conn:write("abc\nrest") end)
task.sleep(0)
local conn = tcp.connect("127.0.0.1", server.port)
%s
server:close()]]

local function said(text)
    local ran = cli.run("sxe-lua", "-e", TEXT:format(text))
    equal(ran.status, 0, ran.errors)
    return ran.output
end

-- promise: docs/lua-handlers.md: After a failed read of `"a"`, or of more than a buffer (16 KiB), the bytes that had
-- arrived are the fourth result.
test("a large read that fails returns the bytes that came", function()
    equal(said "print(conn:read(20000))", "nil\tclosed\tnil\tabc\nrest\n")
end)

-- promise: docs/lua-handlers.md: After any other failed read they stay in the buffer: `conn:read()` returns them.
test("a small read that fails leaves the bytes in the buffer", function()
    equal(said "print(conn:read(10)) print(conn:read())", "nil\tclosed\nabc\nrest\n")
end)

-- promise: docs/lua-handlers.md: conn:lines() leaves a last line without its end to conn:read().
test("conn:lines() leaves a last line without a line end", function()
    equal(said "for line in conn:lines() do print(line) end print(conn:read())", "abc\nrest\n")
end)

-- promise: docs/lua-handlers.md: Bytes that came before a connection broke are read first: all of them, but after a reset one
-- buffer (16 KiB) at most. Only then do reads return the message and errno.
test("bytes that came before a reset are read", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
        local tcp, task = require "sxe.tcp", require "sxe.task"
        local conn = assert(tcp.connect("127.0.0.1", %d))
        conn:write(conn:read "l")
        while not conn.error do task.sleep(0.001) end
        print(conn:read("l"), conn:read(2), conn:read())
        print(conn:read())]]):format(listener:port())}
    local sock = listener:accept()
    sock:send "zero\none\ntwo"
    equal(sock:recv(4), "zero") -- so the other bytes, which came with these, have left the kernel, too
    sock:reset()
    equal(proc:wait(), 0)
    equal(proc:output(), "one\ttw\to\nnil\tconnection: Connection reset by peer\t104\n")
end)
