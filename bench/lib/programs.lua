-- SPDX-License-Identifier: MIT
--
-- What: programs that measure themselves, of which several rows or variants want a value each.
-- Place: rows-micro.lua and rows-seed.lua. One run of a program gives values to all who ask, once
-- to each; who asks again has it run again.

local programs = {}

local runs = {} -- by command: {output, taken = set of who had something of it}

-- Runs it to its end, on the server's CPU, or on those; its output.
local function run(bench, words, cpu)
    local proc <close> = bench.spawn(words, {cpu = cpu or bench.server_cpu})
    local output = proc:output(300)
    local status = proc:wait(300)
    if status ~= 0 then
        error(("%s: exit status %s: %s"):format(words[1], status, proc:errors()), 0)
    end
    return output
end

-- The output of a program, one that `who` has not seen.
function programs.output(bench, words, who, cpu)
    local key = table.concat(words, " ")
    local last = runs[key]
    if not last or last.taken[who] then
        last = {output = run(bench, words, cpu), taken = {}}
        runs[key] = last
    end
    last.taken[who] = true
    return last.output
end

-- The next of several values in its output, by a pattern that captures one.
local queues = {}

function programs.next_value(bench, words, pattern)
    local key = table.concat(words, " ") .. pattern
    local queue = queues[key]
    if not queue or #queue == 0 then
        queue = {}
        for value in run(bench, words):gmatch(pattern) do
            table.insert(queue, 1, tonumber(value))
        end
        queues[key] = queue
    end
    return table.remove(queue) or error(words[1] .. " gave no value", 0)
end

return programs
