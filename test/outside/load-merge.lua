-- SPDX-License-Identifier: MIT
--
-- sxe-http merge: the sum must have the figures that follow from the parts' JSON.

local cli = require "cli"

local function serve()
    local port = wire.free_port()
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    proc:line(20)
    return proc, port
end

-- Run sxe-http once for each list of options, all at the same time; returns the result files. The runs are long enough
-- to overlap on a busy machine, and have enough connections that no query is skipped at the end.
local function run_beside(port, options)
    local procs, paths = {}, {}
    for i, more in ipairs(options) do
        paths[i] = os.tmpname()
        procs[i] = wire.spawn{wire.program("sxe-http"), "-p", tostring(port), "-c", "64", "-d", "5",
                              "--timeout", "120", "--drain", "60", "-q", "--json", paths[i],
                              table.unpack(more)}
    end
    for _, proc in ipairs(procs) do
        proc:output()
        local status = proc:wait(120)
        check(status == 0 or status == 4, proc:errors())
    end
    return paths
end

local function remove(paths)
    for _, path in ipairs(paths) do
        os.remove(path)
    end
end

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read("a")
end

local function numbers(text, name)
    local found = {}
    for number in text:gmatch('"' .. name .. '": ?(%d+)') do
        found[#found + 1] = tonumber(number)
    end
    return found
end

-- promise: docs/load-generator.md: The sum is exact: the function that adds up the workers of one run adds up the
-- accounts and all buckets of all histograms.
test("accounts of the sum are those of the parts together, and close", function()
    local server <close>, port = serve()
    local paths = run_beside(port, {{"-R", "200", "--seed", "1"}, {"-R", "300", "--seed", "2"}})
    local ran = cli.run("sxe-http", "merge", paths[1], paths[2])
    check(ran.status == 0 or ran.status == 4, ran.errors)
    for _, name in ipairs{"offered", "sent", "ok", "wanted", "bytes_received"} do
        equal(numbers(ran.output, name)[1],
              numbers(read(paths[1]), name)[1] + numbers(read(paths[2]), name)[1], name)
    end
    check(ran.errors:find("partly open: 500/s Poisson, 128 connections", 1, true), ran.errors)
    check(server)
    remove(paths)
end)

-- promise: docs/load-generator.md: A sum can be merged with further files.
test("a sum can be merged with another file", function()
    local server <close>, port = serve()
    local option = {"--think", "10ms"}
    local paths = run_beside(port, {option, option, option})
    local two = os.tmpname()
    cli.run("sxe-http", "merge", paths[1], paths[2], "--json", two)
    local at_once = cli.run("sxe-http", "merge", paths[1], paths[2], paths[3])
    local in_steps = cli.run("sxe-http", "merge", two, paths[3])
    for _, name in ipairs{"offered", "ok", "count", "bytes_sent"} do
        equal(table.concat(numbers(in_steps.output:match('"total": (.*)"parts"'), name), " "),
              table.concat(numbers(at_once.output:match('"total": (.*)"parts"'), name), " "), name)
    end
    check(server)
    remove(paths)
    os.remove(two)
end)

-- promise: docs/load-generator.md: Otherwise merge exits with status 2, and says which name of the
--   plan differs, with both values.
test("runs with different plans are refused", function()
    local server <close>, port = serve()
    local paths = run_beside(port, {{"-R", "50"}, {"-R", "50", "--open"}})
    cli.check_refused('model is "partly_open" in the first and "open" in the second', "sxe-http",
                      "merge", paths[1], paths[2])
    check(server)
    remove(paths)
end)

-- promise: docs/load-generator.md: Without an output option the JSON goes to standard output and
--   the report to standard error; `-q` leaves the report out.
test("the sum goes to standard output", function()
    local server <close>, port = serve()
    local paths = run_beside(port, {{"-R", "50"}})
    local ran = cli.run("sxe-http", "merge", paths[1])
    check(ran.output:find("^{"), ran.output)
    check(ran.errors:find("requests  ", 1, true), ran.errors)
    equal(cli.run("sxe-http", "merge", "-q", paths[1]).errors, "")
    check(server)
    remove(paths)
end)

-- promise: docs/load-generator.md: Each run may be in the sum once, also under another name or inside another sum: a
-- file that contains a run of another file is refused.
test("a run is not counted twice", function()
    local server <close>, port = serve()
    local paths = run_beside(port, {{"--think", "10ms"}, {"--think", "10ms"}})
    local copy, sum = os.tmpname(), os.tmpname()
    do
        local file <close> = io.open(copy, "w")
        file:write(read(paths[1]))
    end
    local ran = cli.run("sxe-http", "merge", paths[1], paths[2], "--json", sum)
    check(ran.status == 0 or ran.status == 4, ran.errors)
    for _, pair in ipairs{{paths[1], paths[1]}, {paths[1], copy}, {sum, paths[2]}, {paths[1], sum},
                          {sum, sum}} do
        cli.check_refused("the same run is in both", "sxe-http", "merge", pair[1], pair[2])
    end
    check(server)
    remove(paths)
    remove{copy, sum}
end)
