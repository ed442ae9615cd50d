-- SPDX-License-Identifier: MIT
--
-- The program of docs/from-libuv.md, compiled as its page shows it, except for the port.

local build = os.getenv "SXE_BUILD" or "build/release"

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read("a")
end

-- Compile the page's program with the flags of the libraries, which have sanitizers in the coverage flavour.
local function compile(program, port)
    local source = read "docs/from-libuv.md":match "```c\n(.-)```":gsub("9090", tostring(port))
    local flags, link = read(build .. "/flags"):match "^(.-) | (.-)\n"
    local headers = ""
    for _, name in ipairs{"", "-buffer", "-log", "-pool"} do headers = headers .. " -Ilib-sxe" .. name end
    local file <close> = assert(io.open(program .. ".c", "w"))
    file:write(source)
    file:close()
    check(os.execute(("%s -Wno-missing-declarations%s -I%s/include -o %s %s.c %s/libsxe.a %s -lev -lm"):format(
        flags, headers, build, program, program, build, link)))
end

-- promise: docs/from-libuv.md: The program is an echo server.
test("the program of the page compiles and echoes", function()
    local port, sock
    do
        local listener <close> = wire.listen("127.0.0.1", 0)
        port = listener:port()
    end
    local program = os.tmpname()
    compile(program, port)
    do
        local proc <close> = wire.spawn{program}
        local good
        repeat good, sock = pcall(wire.connect, "127.0.0.1", port) until good
        sock:send("hello")
        equal(sock:recv(5), "hello")
        sock:send(("x"):rep(100000))
        equal(sock:recv(100000), ("x"):rep(100000))
        sock:close()
        check(proc:pid())
    end
    os.execute("rm -f " .. program .. "*") -- the compiler of the coverage flavour leaves more files
end)
