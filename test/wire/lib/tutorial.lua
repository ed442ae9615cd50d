-- SPDX-License-Identifier: MIT
--
-- A page of the docs that shows a program of examples/.

local tutorial = {}

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read("a")
end

-- Whether a block of the page is the whole text of the file.
function tutorial.shows(path, file)
    local text = read(file)
    for block in read(path):gmatch("```%w+\n(.-)```") do
        if block == text then return true end
    end
    return false
end

-- In the coverage flavour, scripts write the lines that ran to the folder that tools/coverage.sh reads: one file a run.
-- Returns the option that makes them do so, or nil.
function tutorial.counted(option, name)
    local build = os.getenv("SXE_BUILD") or "build/release"
    if build:find("coverage", 1, true) then
        os.execute("mkdir -p " .. build .. "/lua")
        tutorial.runs = (tutorial.runs or 0) + 1
        return ("%s=%s/lua/%s-%d.info"):format(option, build, name, tutorial.runs)
    end
end

return tutorial
