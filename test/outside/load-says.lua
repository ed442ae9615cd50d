-- SPDX-License-Identifier: MIT
--
-- The messages of sxe-http for options that ask for nothing, or for a fraction of something.

local cli = require "cli"
local httpd = require "httpd"
local load = require "load"

-- promise: docs/load-generator.md: Counts are whole numbers: `-c 1.5` is refused, and `-c 1.5k` is 1,500.
test("a count that is not a whole number is refused", function()
    for option, what in pairs{["-c"] = "(-c)", ["-n"] = "(-n)", ["-t"] = "(-t)",
                              ["--requests"] = "(--requests)", ["--trials"] = "(--trials)",
                              ["--pipeline"] = "(--pipeline)", ["--seed"] = "(--seed)",
                              ["--connect-ramp"] = "(--connect-ramp)"} do
        local ran = cli.run("sxe-http", option, "1.5", "http://127.0.0.1/")
        equal(ran.status, 2, option)
        check(ran.errors:find(what .. " is '1.5'; it must be a whole number", 1, true), ran.errors)
    end
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "0.002k", "-n", "1")
    for _, sock in ipairs(load.accept(listener, 2)) do
        sock:recv_until("\r\n\r\n")
        sock:send(load.reply("hello"))
    end
    client:finish():check_report{wanted = 2, ok = 2}
end)

-- promise: docs/load-generator.md: If the rate is so low that nothing arrives during the run, `sxe-http`
--   says so, and exits with 1.
test("a rate so low that nothing arrives is reported", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-http", "-q", "-c", "1", "-R", "0.001", "-d", "0.1", server.url)
    equal(ran.status, 1)
    check(ran.errors:find("sxe-http: nothing arrived in 100 ms at 0.001/s; ", 1, true), ran.errors)
end)

-- promise: docs/load-generator.md: An interrupt before that time ends the run with the status 130, and
--   it says that nothing was measured.
test("an interrupt before --start-at says that nothing was measured", function()
    local server <close> = httpd.start()
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-q", "-c", "1", "--start-at", "+3600",
                                    server.url}
    check(proc:line(20):find("closed loop: ", 1, true))
    wire.sleep(0.1)
    proc:signal("INT")
    equal(proc:output(), "")
    equal(proc:wait(20), 130)
    equal(proc:errors(), "sxe-http: interrupted before anything was measured\n")
end)

-- promise: docs/load-generator.md: The first line of a shard's report describes the whole load, and says which part
-- the shard is; all other lines are about the shard.
test("a shard's report says which part of the load it is", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-http", "-q", "-c", "4", "-n", "5", "--shard", "1/2", server.url)
    check(ran.output:find("4 connections * 5 requests each = 20 requests", 1, true), ran.output)
    check(ran.output:find("of which this is shard 1 of 2", 1, true), ran.output)
    check(ran.output:find("\nopened    2/2 connections", 1, true), ran.output)
    check(ran.output:find("\nrequests  10  ok 10", 1, true), ran.output)
end)
