-- SPDX-License-Identifier: MIT
--
-- The judgements of server.lua, as functions without side effects, so that test/wire/e02-soak-checks.lua can show that
-- each of them finds what it is for.

local checks = {}

-- What the log of a server may say during the soak, after the prefix of its lines. Any other line is unexplained. The
-- lines that need a kill are expected only if a process was killed.
local EXPECTED <const> = {
    "^started as root: ",
    "^process %d+ serves as user root %(0%), group 0$",
    "^%S+/app%.lua was loaded again, into 2 processes$",
    "^%S+/app%.lua is loaded again later: %d+ earlier processes still answer requests, and one of ",
    "^process %d+ starts, to serve in place of this one$",
    "^process %d+ serves in place of this one, which finishes its requests$",
    -- Two upgrades may follow one another before the first new program serves.
    "^a new program, process %d+, is starting already: send SIGUSR2 again when it serves$",
    "^process %d+ serves as worker %d+$",
    -- Other programs of the machine may take the CPUs for so long.
    "^loop blocked %d+ ms in ",
}
local EXPECTED_AFTER_KILL <const> = {
    "^process %d+, which [%a ]+, ended with signal 9 %(Killed%)",
    "^processes end soon after their start, one after the other: the next one is started in %d+ ms; ",
    "^%S+/app%.lua could not be loaded again; the version loaded before goes on serving",
}

local function matches(text, patterns)
    for _, pattern in ipairs(patterns) do
        if text:find(pattern) then return true end
    end
    return false
end

-- Whether the soak explains a line of the log.
function checks.is_expected(line, kills)
    local text = line:match "^%d+ [%d.]+ P%x+ %S+ %d %- (.*)$"
    return text ~= nil and (matches(text, EXPECTED) or kills > 0 and matches(text, EXPECTED_AFTER_KILL))
end

-- Whether a line of the access log is whole: the format is the default one, combined.
function checks.is_access_line(line)
    return line:find('^%S+ %- %- %[%d%d/%a%a%a/%d%d%d%d:%d%d:%d%d:%d%d [+-]%d%d%d%d%] ' ..
                     '".*" [%d-]+ [%d-]+ ".*" ".*"$') ~= nil
end

-- A connection whose worker is killed ends in one of these ways.
local BY_KILL <const> = {reset = true, closed_early = true, short_body = true}
-- Requests that a busy machine let sxe-http send too late, so that it did not send them, have not failed.
local BY_LOAD <const> = {unsent = true, shed = true}

-- Judge `total` of a report that --json of sxe-http wrote: return the number of requests, of those that failed, and of
-- those that kills do not explain. Each kill explains one failed request for each connection of the load.
function checks.judge(total, kills, connections)
    local accounts, sockets = total.accounts, total.sockets
    -- A connection is not reopened if its worker is killed during the handshake.
    local explainable, others = sockets.not_reopened, 0
    for kind, number in pairs(accounts.ends) do
        if BY_KILL[kind] then
            explainable = explainable + number
        elseif kind ~= "ok" then
            others = others + number
        end
    end
    for _, number in pairs(sockets.unopened) do others = others + number end
    for kind, number in pairs(accounts.skipped) do
        if not BY_LOAD[kind] then others = others + number end
    end
    local failed = explainable + others
    return accounts.ends.ok + failed, failed, others + math.max(0, explainable - kills * connections)
end

local function median(values, first, last)
    local part = table.move(values, first, last, 1, {})
    table.sort(part)
    local middle = #part // 2
    return #part % 2 == 1 and part[middle + 1] or (part[middle] + part[middle + 1]) / 2
end

-- Whether samples are flat: the medians of their second and of their last quarter, and whether the last one is at most
-- `share` and `room` larger. Fewer than four samples tell nothing: nil.
function checks.flat(samples, share, room)
    local quarter = #samples // 4
    if quarter == 0 then return nil end
    local before = median(samples, quarter + 1, 2 * quarter)
    local after = median(samples, #samples - quarter + 1, #samples)
    return before, after, after <= before * (1 + share) + room
end

-- Judge what the load of redis.lua has counted, and append complaints. sums.told: how often a client was told that a
-- command which must not be repeated was executed; lost: how many of these the server does not know.
function checks.judge_commands(sums, count, complaints)
    local function complain(is_bad, text)
        if is_bad then complaints[#complaints + 1] = text end
    end
    if not sums.numbers then return complain(true, "the load has printed no sums") end
    complain(sums.wrong > 0, ("%d replies reached another command than their own"):format(sums.wrong))
    complain(sums.twice > 0, ("%d commands were executed twice"):format(sums.twice))
    complain(sums.lost > 0, ("%d commands were not executed, but their client was told so"):format(sums.lost))
    complain(sums.odd > 0, ("%d errors that nobody expects"):format(sums.odd))
    complain(sums.numbers < count, ("only %d numbers were used"):format(sums.numbers))
    local others = sums.wrong + sums.cut + sums.failed
    complain(sums.good < others, ("%d calls succeeded, and %d did not"):format(sums.good, others))
    complain(sums.told == 0 or sums.cut == 0, "no command was counted, or none was cancelled")
end

return checks
