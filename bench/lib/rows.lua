-- SPDX-License-Identifier: MIT
--
-- What: lists everything that is measured, one row for each measurement.
-- Place: bench.lua runs the rows; rows-*.lua contain them, one file for each kind.
--
-- A row: name; group (a name for several rows); title; work: a sentence that says what is done;
-- command: what to type to run it by hand; service; peers (peers.lua), in order; reference: the
-- peer by whose value all values are divided; ours: our peer; target = {peer =, ratio =} or
-- {value =}, of = the issue that asks for it; checks: how each reply is checked; void: what would
-- make the result meaningless; unit, better ("more" or "less"), digits; one of three times in
-- seconds: budget for the whole row, takes for a sample, seconds for the measured part of a sample;
-- load: what bench.load puts on a server, or run(bench, peer) -> sample, for other measurements.
-- method.lua says how the rounds of a row are made.

local rows = {list = {}}

-- The rows of --smoke, which show in seconds that everything works: each way to measure, once.
local SMOKE = {S4 = true, S6 = true, ["S8-sweep"] = true, S9 = true, pipeline = true,
               connects = true, ["start-up"] = true, size = true, ["file-13"] = true,
               ["lua-2010"] = true, ["example-echo"] = true, buffer = true, ["tls-hello-64"] = true,
               ["tls-resumed"] = true, ["tls-memory"] = true, ["tls-clients-64"] = true, ["workers-64"] = true,
               ["proxy-64"] = true, ["proxy-latency"] = true,
               ["workers-metrics"] = true, ["workers-log"] = true, ["workers-latency"] = true,
               ["postgres-select"] = true, ["redis-pipeline"] = true, ["store-get"] = true}

for _, kind in ipairs{"seed", "http", "files", "tls", "workers", "proxy", "lua", "postgres", "stores", "micro"} do
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
