-- SPDX-License-Identifier: MIT
--
-- The access log of several workers in a FIFO, by docs/observability.md: no line is in the midst of another one.

local httpd = require "httpd"

local WORKERS, CONNECTIONS, REQUESTS = 4, 16, 100 -- requests of each connection in each half of the test

local function run(command) check(os.execute(command), command) end

-- The texts of a request with a number: of all lengths that keep the line below 4,096 bytes.
local function texts_of(number)
    return ("p"):rep(number * 7 % 1000), ("r"):rep(1 + number * 13 % 1000), ("a"):rep(1 + number * 29 % 1000)
end

-- Send requests with the numbers from `first` on, on many connections at once, and read the replies.
local function ask(server, first)
    local socks, number = {}, first
    for i = 1, CONNECTIONS do
        local requests = {}
        for n = 1, REQUESTS do
            local path, referer, agent = texts_of(number)
            requests[n] = ("GET /%d/%s HTTP/1.1\r\nHost: a\r\nReferer: %s\r\nUser-Agent: %s\r\n\r\n")
                :format(number, path, referer, agent)
            number = number + 1
        end
        socks[i] = {server:connect(), requests}
    end
    for n = 1, REQUESTS do
        for _, each in ipairs(socks) do each[1]:send(each[2][n]) end
        for _, each in ipairs(socks) do equal(each[1]:read_reply().status, 200) end
    end
    for _, each in ipairs(socks) do each[1]:close() end
    return number
end

-- promise: docs/observability.md: A pipe or a socket, too, gets whole lines from several workers, if no line has more than
-- 4,096 bytes. A FIFO needs no reader: lines wait in it, and are dropped when it is full.
test("lines of several workers in a FIFO are whole, and those that are missing are counted", function()
    local directory = os.tmpname()
    os.remove(directory)
    run(("mkdir %s && mkfifo %s/log"):format(directory, directory))
    local path = directory .. "/log"
    local server <const> = httpd.start("-w", tostring(WORKERS), "--access-log", path)
    local next_number = ask(server, 1) -- more than a FIFO holds, and nobody reads
    local reader = wire.spawn{"sh", "-c", ("cat %s >%s/lines"):format(path, directory)}
    httpd.wait_until(function() -- a FIFO that nobody has open loses its lines when the server ends
        local file <close> = io.open(directory .. "/lines")
        return file and file:seek "end" > 0
    end, "lines that the reader has read")
    next_number = ask(server, next_number)
    server:stop()
    equal(reader:wait(60), 0)
    local seen, count, lost = {}, 0, 0
    for line in io.lines(directory .. "/lines") do
        local number = tonumber(line:match '"GET /(%d+)/')
        check(number and not seen[number], line)
        local asked, referer, agent = texts_of(number)
        check(line:find(('"GET /%d/%s HTTP/1.1" 200 14 "%s" "%s"'):format(number, asked, referer, agent), 1, true), line)
        seen[number], count = true, count + 1
    end
    for number in server.proc:errors():gmatch "has lost (%d+) lines" do lost = lost + number end
    equal(count + lost, next_number - 1)
    check(count > 0)
    run("rm -r " .. directory)
end)
