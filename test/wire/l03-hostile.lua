-- SPDX-License-Identifier: MIT
-- test/fuzz/hostile.lua calls functions with any arguments in any order: the result is errors at most, never a crash.

local SEEDS, STEPS, AT_ONCE = 12, 300, 4
local PATIENCE = 250 -- seconds, enough for a busy machine

-- Run the script in a new directory that holds a file and a folder.
local COMMAND = 'ulimit -c 0; cd "$1" && mkdir dir && echo hi >dir/a.txt && '
                .. 'exec "$2" --memory 64m --cpu 500ms "$3/test/fuzz/hostile.lua" "$4" "$5" </dev/null'

local function here()
    local pwd <close> = io.popen "pwd"
    return pwd:read "l"
end

local function program(root)
    local path = wire.program "sxe-lua"
    return path:find "^/" and path or root .. "/" .. path
end

local function start(seed)
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local root = here()
    return {seed = seed, directory = directory,
            proc = wire.spawn{"sh", "-c", COMMAND, "sh", directory, program(root), root,
                              tostring(seed), tostring(STEPS)}}
end

-- Whether the run ended well.
local function finish(run)
    local proc <close> = run.proc
    local output = proc:output(PATIENCE)
    local status = proc:wait(PATIENCE)
    local errors = proc:errors()
    os.execute("rm -r " .. run.directory)
    check((status == 1 or status == 7) and not errors:find "Sanitizer"
          and not errors:find "runtime error: ",
          ("seed %d: status %s, %s"):format(run.seed, status, errors:sub(-4000)))
    return output:find "the end\n" ~= nil
end

test("a script that calls anything in any order causes errors at most", function()
    local ended = 0
    for first = 1, SEEDS, AT_ONCE do
        local runs = {}
        for seed = first, first + AT_ONCE - 1 do runs[#runs + 1] = start(seed) end
        for _, run in ipairs(runs) do ended = ended + (finish(run) and 1 or 0) end
    end
    check(ended > 0, "none of them came to its end")
end)
