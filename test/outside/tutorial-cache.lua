-- SPDX-License-Identifier: MIT
--
-- The programs of docs/tutorial-cache.md: examples/cache.c and examples/lua/cache.lua.

local tutorial = require "tutorial"

local function with_file(run)
    local file = os.tmpname()
    os.remove(file)
    local good, message = pcall(run, file)
    os.remove(file)
    if not good then error(message, 0) end
end

local function output_of(command)
    local proc <close> = wire.spawn(command)
    local output = proc:output(60)
    return output, proc:wait(60)
end

local function cache(file, seconds, command)
    return output_of{wire.program("examples/cache"), file, tostring(seconds), command}
end

local function listing(file)
    local command = {wire.program("sxe-lua"), tutorial.counted("--coverage", "tutorial-cache")}
    table.move({"examples/lua/cache.lua", file}, 1, 2, #command + 1, command)
    return (output_of(command))
end

test("the page shows the programs", function()
    check(tutorial.shows("docs/tutorial-cache.md", "examples/cache.c"))
    check(tutorial.shows("docs/tutorial-cache.md", "examples/lua/cache.lua"))
end)

-- promise: docs/tutorial-cache.md: Every program that runs the same command within some seconds gets the kept text,
-- without a server in between.
test("the second program gets the text of the first, and a script sees it", function()
    with_file(function(file)
        local first = cache(file, 3600, "date +%N")
        check(first:find("^%d+\n$"), first)
        equal(cache(file, 3600, "date +%N"), first)
        local said = listing(file)
        check(said:find("^date %+%%N: 10 bytes, for %d+ s more\n1 hits, 1 misses\n"), said)
    end)
end)

-- promise: docs/tutorial-cache.md: The output of a failed command is not kept, so the next program tries again.
test("a command that fails is tried again", function()
    with_file(function(file)
        local text, status = cache(file, 3600, "echo no; false")
        equal(text, "")
        equal(status, 1)
        check(listing(file):find("^0 hits, 1 misses\n"))
    end)
end)

-- promise: docs/tutorial-cache.md: An expired entry is not found any more, and its room is used again.
test("an entry expires", function()
    with_file(function(file)
        cache(file, 0.001, "echo old")
        wire.sleep(0.01)
        check(listing(file):find("^0 hits, 1 misses\n"))
    end)
end)
