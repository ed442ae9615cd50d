-- SPDX-License-Identifier: MIT
--
-- What: everything that is measured, a row each.
-- Place: bench.lua runs them; rows-*.lua have them, by kinds.
--
-- A row: name, group (a name for several), title; work: what is done, in a sentence; command: what
-- to type to see it by hand; service, peers: who does it (peers.lua), in order; reference: the peer
-- that all are divided by; ours, target = {peer =, ratio =} or {value =}, of: which issue wants it;
-- checks: what is known of every reply; void: what would make the result mean nothing; unit, better ("more"
-- or "less"), digits; seconds: budget = for all of it, or takes = for a sample, or seconds = what
-- is measured of one; load: what bench.load puts on a server, or run(bench, peer) -> sample, for
-- what is no such load. method.lua says how rounds are made of it.

local rows = {list = {}}

-- The rows that show in seconds that everything works: each way to measure, once.
local SMOKE = {S4 = true, S6 = true, ["S8-sweep"] = true, S9 = true, pipeline = true,
               connects = true, ["start-up"] = true, size = true, ["file-13"] = true,
               ["lua-2010"] = true, ["example-echo"] = true, buffer = true}

for _, kind in ipairs{"seed", "http", "files", "lua", "micro"} do
    for _, row in ipairs(require("rows-" .. kind)) do
        row.group = row.group or kind
        row.better = row.better or "more"
        row.smoke = SMOKE[row.name] or false
        rows.list[#rows.list + 1] = row
    end
end

function rows.find(name)
    for _, row in ipairs(rows.list) do
        if row.name == name then
            return row
        end
    end
end

return rows
