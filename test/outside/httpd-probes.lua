-- SPDX-License-Identifier: MIT
--
-- The probes of docs/observability.md: they are in the program. httpd-bpftrace.lua watches them.

local PROBES <const> = {"accept", "readable", "parsed", "handler__begin", "handler__end", "reply", "flushed", "closed",
                        "timeout"}

-- The names of the probes in a program's file: its notes have provider, name and values, each ended by a zero.
local function probes_of(path)
    local file <close> = assert(io.open(path, "rb"))
    local names = {}
    for name in file:read("a"):gmatch "\0sxe\0([a-z_]+)\0[%-0-9]+@" do
        names[name] = true
    end
    return names
end

local present <const> = probes_of(wire.program "sxe-httpd")
if not next(present) then
    print "skipped: the probes, because the program was built without <sys/sdt.h>"
end

-- promise: docs/observability.md: `libsxe` has static probes (USDT) of the provider `sxe`.
test("each probe of the page is in the program, and no other", function()
    if not next(present) then return end
    for _, name in ipairs(PROBES) do
        check(present[name], name)
        present[name] = nil
    end
    equal(next(present), nil)
end)
