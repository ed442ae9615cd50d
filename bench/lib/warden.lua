-- SPDX-License-Identifier: MIT
--
-- What: makes sure that no process and no file of a run outlives it, however it ends. Processes
-- that the driver starts die with it, but their children, for example a server's workers, would
-- live on, and files would stay.
-- Place: servers.lua tells the warden of each server. The warden is a shell that waits for the
-- driver's end, then ends the process groups that are still in its list, and removes the directory.

local warden = {}

local list -- the file of lines "begin PID" and "end PID"; a PID is that of a group's first process

local SCRIPT = [[
tail --pid="$1" -f /dev/null
[ -d "$2" ] || exit 0
awk '$1 == "begin" { live[$2] = 1 } $1 == "end" { delete live[$2] }
     END { for (pid in live) print pid }' "$2/groups" | while read -r pid; do
    kill -s KILL -- "-$pid" 2>/dev/null
done
rm -rf "$2"
]]

local function say(word, pid)
    if list then
        local file <close> = assert(io.open(list, "a"))
        file:write(word, " ", pid, "\n")
    end
end

-- Start the warden for this driver and this directory.
function warden.start(directory)
    local file <close> = assert(io.open("/proc/self/stat"))
    list = directory .. "/groups"
    assert(io.open(list, "w")):close()
    os.execute(("setsid sh -c '%s' warden %s %s >/dev/null 2>&1 &"):format(
        SCRIPT:gsub("'", "'\\''"), file:read("a"):match("^%d+"), directory))
end

function warden.has_begun(proc)
    say("begin", proc:pid())
end

function warden.has_ended(proc)
    say("end", proc:pid())
end

return warden
