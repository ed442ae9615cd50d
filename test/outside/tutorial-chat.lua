-- SPDX-License-Identifier: MIT
--
-- The program of docs/tutorial-chat.md, which is examples/chat.c.

local tutorial = require "tutorial"

local function start()
    local port
    do
        local listener <close> = wire.listen("127.0.0.1", 0)
        port = listener:port()
    end
    local proc = wire.spawn{wire.program("examples/chat"), tostring(port)}
    return proc, function()
        local good, sock
        repeat good, sock = pcall(wire.connect, "127.0.0.1", port) until good
        return sock
    end
end

-- Connect, and wait until the chat knows it: then it gets what `other` says.
local function join(connect, other)
    local sock = connect()
    if other then
        sock:send("hello\n")
        equal(other:recv(6), "hello\n")
    end
    return sock
end

-- promise: docs/tutorial-chat.md: The program is [examples/chat.c](../examples/chat.c):
test("the page shows the program", function()
    check(tutorial.shows("docs/tutorial-chat.md", "examples/chat.c"))
end)

-- promise: docs/tutorial-chat.md: Each line that one of them types goes to all others.
test("a line goes to all others, whole, and not to its author", function()
    local proc <close>, connect = start()
    local ann <close> = join(connect)
    local bob <close> = join(connect, ann)
    local eve <close> = join(connect, ann)
    equal(bob:recv(6), "hello\n")
    ann:send("one\ntwo\nthr")
    ann:send("ee\n")
    for _, sock in ipairs{bob, eve} do equal(sock:recv(14), "one\ntwo\nthree\n") end
    bob:send("four\n")
    equal(ann:recv(5), "four\n")
    equal(eve:recv(5), "four\n")
    check(proc:pid())
end)

-- promise: docs/tutorial-chat.md: Otherwise it consumes one line, and calls `sxe_resume` so that the loop calls it again
-- for the rest.
test("all lines of a member that leaves at once go to the others", function()
    local proc <close>, connect = start()
    local ann <close> = join(connect)
    for _ = 1, 10 do
        local bob = join(connect, ann)
        bob:send("1\n2\n3\n4\n5\n")
        bob:close()
        equal(ann:recv(10), "1\n2\n3\n4\n5\n")
    end
    check(proc:pid())
end)

-- promise: docs/tutorial-chat.md: A member that sends 16 KiB without a line end is closed, too.
test("a line without an end closes its author only", function()
    local proc <close>, connect = start()
    local ann <close> = join(connect)
    local bob <close> = join(connect, ann)
    bob:send(("x"):rep(16384))
    equal(bob:recv_all(), "")
    local eve <close> = join(connect, ann)
    eve:send("still here\n")
    equal(ann:recv(11), "still here\n")
    check(proc:pid())
end)

-- promise: docs/tutorial-chat.md: No other member waits for it.
test("a member that does not read is closed, and the others go on", function()
    local proc <close>, connect = start()
    local ann <close> = join(connect)
    local deaf <close> = join(connect, ann)
    local bob <close> = join(connect, ann)
    local line = ("y"):rep(8191) .. "\n"
    for _ = 1, 4096 do
        ann:send(line)
        equal(bob:recv(#line), line)
    end
    bob:send("end\n")
    equal(ann:recv(4), "end\n")
    local good, why = pcall(deaf.recv_all, deaf)
    check(not good and why:find("reset"), why)
end)
