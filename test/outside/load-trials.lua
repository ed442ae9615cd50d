-- SPDX-License-Identifier: MIT
--
-- Trials of sxe-http: their arrivals, and which figures are results. How many queries arrive in a
-- given time depends on the seed alone, so it is the same in each run of this.

local cli = require "cli"

local function serve()
    local port = wire.free_port()
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    proc:line(20)
    return proc, port
end

-- What arrived in each trial, and in all of them.
local function offered(port, ...)
    local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "8", "-R", "400", "-d", "0.25",
                        "--timeout", "120", "--drain", "60", "--json", "-", ...)
    local numbers = {}
    check(ran.status == 0 or ran.status == 4, ran.errors)
    for number in ran.output:gmatch '"offered": ?(%d+)' do
        numbers[#numbers + 1] = tonumber(number)
    end
    return numbers
end

local function are_all_equal(numbers, first, last)
    for i = first + 1, last do
        if numbers[i] ~= numbers[first] then
            return false
        end
    end
    return true
end

-- promise: docs/load-generator.md: Each trial has arrivals and random values of its own: the seed
--   of trial N, from 0 on, is `--seed` + N * 2^48.
test("trials have different arrivals, and the same in each run", function()
    local server <close>, port = serve()
    local numbers = offered(port, "--trials", "6")
    check(not are_all_equal(numbers, 1, 6), table.concat(numbers, " "))
    equal(table.concat(offered(port, "--trials", "6"), " "), table.concat(numbers, " "))
    local third = offered(port, "--seed", ("%d"):format(1 + 2 * 2 ^ 48))
    equal(third[1], numbers[3])
    check(server)
end)

-- promise: docs/load-generator.md: The two sides of a comparison use the same list of seeds: those
--   of `--aa` pair by pair, and two runs with the same `--seed`.
test("the sides of a pair have the same arrivals", function()
    local server <close>, port = serve()
    local numbers = offered(port, "--aa")
    for i = 1, 12, 2 do
        equal(numbers[i], numbers[i + 1], "pair " .. (i + 1) // 2)
    end
    check(not are_all_equal(numbers, 1, 12), table.concat(numbers, " "))
    check(server)
end)

-- promise: docs/load-generator.md: With a rate (`-R`) or a log (`--replay`), the rate is given, and
--   no result: the report has no interval of it, `compare` does not judge it, and `--until-ci`
--   needs another figure.
test("a rate that is given is no result", function()
    local server <close>, port = serve()
    local a, b = os.tmpname(), os.tmpname()
    for path, rate in pairs{[a] = "1000", [b] = "100"} do
        local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "8", "-R", rate, "-d", "0.1",
                            "--trials", "6", "--json", path)
        check(not ran.output:find("rate/s", 1, true), ran.output)
        check(ran.output:find("trials    6, ", 1, true), ran.output)
    end
    local compared = cli.run("sxe-http", "compare", a, b)
    check(compared.output:find("\nrate a second [^\n]*given %(%-R, %-%-replay%), so no result\n"),
          compared.output)
    os.remove(a)
    os.remove(b)
    cli.check_refused("name another figure", "sxe-http", "-R", "100", "--until-ci", "2%")
    check(server)
end)
