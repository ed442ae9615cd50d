-- SPDX-License-Identifier: MIT
--
-- What: runs programs that measure themselves and print values for several rows or variants.
-- Place: for rows-micro.lua one run of a program serves each variant once; if a variant asks again,
-- the program is run again. For rows-seed.lua a program, which takes long to start, stays and waits
-- for each round.

local others = require "others"
local servers = require "servers"

local programs = {}

local PATIENCE = 300 -- seconds

local runs = {} -- by command: {output, lost, taken = set of the variants that got the output}

-- Run a program to its end, on the server's CPU or on `cpu`. Returns its output.
local function run(bench, words, cpu)
    local proc <close> = bench.spawn(words, {cpu = cpu or bench.server_cpu})
    local output = proc:output(PATIENCE)
    local status = proc:wait(PATIENCE)
    if status ~= 0 then
        error(("%s: exit status %s: %s"):format(words[1], status, proc:errors()), 0)
    end
    return output
end

-- An output of the program that `who` has not seen yet, and {lost, lost_to, stolen}: the CPUs that
-- others took during that run.
function programs.output(bench, words, who, cpu)
    local key = table.concat(words, " ")
    local last = runs[key]
    if not last or last.taken[who] then
        local who_else = others.watch()
        last = {output = run(bench, words, cpu), taken = {}}
        last.lost, last.lost_to, last.stolen = who_else()
        runs[key] = last
    end
    last.taken[who] = true
    return last.output, last
end

-- ---- Programs that wait for a word before each round ----

-- Start a program that prints a line when it is ready, and one after each word on its standard
-- input. Returns a function(word) -> line. The program stays for all rounds of a row, unless it
-- ends.
function programs.start(bench, words)
    local kept = bench.kept or {}
    local program = kept[words[1]]
    if not program then
        local path = bench.scratch .. "/words"
        assert(os.execute("mkfifo " .. path))
        local input = assert(io.open(path, "r+")) -- for reading, too, so that this does not wait
        bench.command = servers.command_line(words)
        local proc = bench.spawn({"sh", "-c", 'exec "$@" <"$0"', path, table.unpack(words)},
                                 {cpu = bench.server_cpu})
        program = setmetatable({proc = proc, input = input}, {__close = function()
            input:close()
            local _ <close> = proc
        end})
        kept[words[1]] = program
        program.is_ready = proc:line(PATIENCE)
        os.remove(path)
    end
    return function(word)
        program.input:write(word, "\n")
        program.input:flush()
        local line = program.is_ready and program.proc:line(PATIENCE)
        if not line then
            kept[words[1]] = nil
            error(words[1] .. " ended: " .. program.proc:errors(), 0)
        end
        return line
    end
end

return programs
