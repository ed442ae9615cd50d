-- SPDX-License-Identifier: MIT
--
-- `make truth`: sxe-http against servers of known behaviour. Prints the table of
-- docs/load-generator.md: what theory says, and what sxe-http says.

local known = require "known"

local function time(us)
    if not us then return "n/a" end
    if us < 1000 then return ("%.0f µs"):format(us) end
    return us < 1e6 and ("%.3g ms"):format(us / 1e3) or ("%.3g s"):format(us / 1e6)
end

-- A percentile or the maximum of --csv.
local function at(ran, times, name)
    local us = ran.total[times .. "_" .. name .. "_us"]
    local from = ran.total[times .. "_censored_from_us"]
    return name .. " " .. (us and from and us >= from and "> " or "") .. time(us)
end

local function rate(ran) return ("%.0f/s"):format(ran.total.rate) end
local function status(ran) return "exit status " .. ran.status end

local function part(ran, name, of)
    return ("%s %.1f %%"):format(name, 100 * ran.total[name] / ran.total[of])
end

local rows = {
    {"fixed:5", "-c 16", "3200/s, p50 5 ms, p99 5 ms", function(ran)
        return {rate(ran), at(ran, "service", "p50"), at(ran, "service", "p99")}
    end},
    {"bimodal:0.1,1,50", "-c 16", "2712/s, p50 1 ms, p95 50 ms", function(ran)
        return {rate(ran), at(ran, "service", "p50"), at(ran, "service", "p95")}
    end},
    {"lognormal:5,1", "-c 16", "1941/s, p50 5 ms, p95 25.9 ms, p99 51.2 ms", function(ran)
        return {rate(ran), at(ran, "service", "p50"), at(ran, "service", "p95"),
                at(ran, "service", "p99")}
    end},
    {"md1:1000", "-R 700 -c 64 -d 16", "mean 2.17 ms (Pollaczek, Khinchine)", function(ran)
        return {"mean " .. time(ran.total.response_mean_us)}
    end},
    {"capped:200", "-R 400 -c 16", "200/s, skipped 49 %, exit status 1", function(ran)
        return {rate(ran), part(ran, "skipped", "offered"), status(ran)}
    end},
    {"stalled:1000,1000", "-R 1000", "p90 600 ms, max 1 s", function(ran)
        return {at(ran, "response", "p90"), at(ran, "response", "max")}
    end},
    {"bimodal:0.02,1,3000", "-R 500 --timeout 1", "p95 1 ms, p99 > 1 s, errors 2 %", function(ran)
        return {at(ran, "service", "p95"), at(ran, "service", "p99"), part(ran, "errors", "sent")}
    end},
    {"storm:0.6,20", "-c 16", "p50 > 10 s, errors 60 %", function(ran)
        return {at(ran, "service", "p50"), part(ran, "errors", "sent")}
    end},
    {"lying:0.1,5", "-R 500", "short bodies 10 %, p50 5 ms, p95 > 10 s", function(ran)
        return {part(ran, "short_body", "sent"), at(ran, "service", "p50"),
                at(ran, "service", "p95")}
    end},
    {"hung", "--drain 1 --threshold errors<1%", "errors 100 %, exit status 3", function(ran)
        return {part(ran, "errors", "sent"), status(ran)}
    end},
}

print("| server | options | theory | sxe-http says |\n|---|---|---|---|")
for _, row in ipairs(rows) do
    local law, options, theory, tell = table.unpack(row)
    local server <close> = known.start(law)
    local words = {}
    for word in options:gmatch "%S+" do
        words[#words + 1] = word
    end
    local said = table.concat(tell(known.load(server, table.unpack(words))), ", ")
    print(("| `%s` | `%s` | %s | %s |"):format(law, options, theory, said))
end
