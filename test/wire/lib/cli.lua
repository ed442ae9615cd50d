-- SPDX-License-Identifier: MIT
-- Runs one of our programs to its end: cli.run("sxe-httpd", "--help") -> {status, output, errors}

local cli = {}

function cli.run(name, ...)
    local proc <close> = wire.spawn{wire.program(name), ...}
    local output = proc:output()
    return {status = proc:wait(20), output = output, errors = proc:errors()}
end

-- Run a command, a table as wire.spawn takes it, for at most so many seconds. Its status must be 0 and it must print no
-- errors. Returns its output.
function cli.output_of(seconds, command)
    local proc <close> = wire.spawn(command)
    local output = proc:output(seconds)
    equal(proc:errors(), "")
    equal(proc:wait(seconds), 0)
    return output
end

-- Check that a command line is refused: status 2, and a message that contains `words`.
function cli.check_refused(words, name, ...)
    local ran = cli.run(name, ...)
    equal(ran.status, 2, "exit status of " .. table.concat({name, ...}, " "))
    equal(ran.output, "", "standard output")
    check(ran.errors:find(words, 1, true), ("%q is not in %q"):format(words, ran.errors))
end

return cli
