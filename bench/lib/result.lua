-- SPDX-License-Identifier: MIT
--
-- What: keeps the result of a run as one table, which is written to a file of bench/results and
-- read again.
-- Place: bench.lua adds the rows one by one; report.lua and page.lua show the result.
--
-- result    {version, date, machine, options, planned_s, took_s, rows, missing = names of rows that
--            should be there}
-- row       {name, date, commit, title, group, work, command, checks, void, unit, better, digits,
--            plot, x_title, reference, ours, seconds, rounds, is_void, why_void,
--            void_samples = {{round, peer, why}}, lost = CPUs that others took, notes,
--            columns, targets = {{peer, key, ratio or value, of, got, is_met}}, disagreement,
--            skipped, has_failed, second_why, took_s, is_exact = does not depend on others, peers}
-- peer      {name, title, version, command, client, values, median, min, max, ratio, ratio_min,
--            ratio_max, cpu_server, cpu_client, bottleneck, more = {[key] = median}, points,
--            candles, curve, note, second}

local cjson = require "cjson"
local json = require "json"
local tables = require "tables"

local result = {}

local FULL = 0.9 -- of a CPU: a side that uses this much limits the rate
local AGREE = 0.10 -- two clients disagree if their results differ by more

-- ---- A peer ----

local function field_of(sample, key)
    local value = sample.more and sample.more[key]
    if value == nil then
        value = sample[key]
    end
    return value
end

-- The values of a key in all rounds that have the key.
local function column(rounds, name, key)
    local values = {}
    for _, samples in ipairs(rounds) do
        local value = samples[name] and field_of(samples[name], key)
        if type(value) == "number" then
            values[#values + 1] = value
        end
    end
    return values
end

local function median(values)
    if #values == 0 then
        return nil
    end
    return (tables.spread(values))
end

-- For each round: the peer's value (or its other key) divided by the reference's.
local function ratios_of(rounds, name, reference, key)
    local values = {}
    for _, samples in ipairs(rounds) do
        local one, other = samples[name], samples[reference]
        local a = one and field_of(one, key or "value")
        local b = other and field_of(other, key or "value")
        if a and b and b ~= 0 then
            values[#values + 1] = a / b
        end
    end
    return values
end

local function cpus_of(row)
    local cpu = row.context and row.context.cpu
    return type(cpu) == "table" and #cpu or 1
end

-- If a row's servers have several CPUs, the client runs on the same ones, so that its work counts
-- with theirs.
local function bottleneck_of(row, server, client)
    if not server or not client then
        return nil
    end
    local cpus = cpus_of(row)
    local is_server = (cpus > 1 and server + client or server) / cpus >= FULL
    local is_client = client / (row.client_cpus or 1) >= FULL
    return is_server and is_client and "both" or is_server and "server"
        or is_client and "client" or "neither"
end

-- Merge the points {x, value, memory} of all rounds: the medians at each x.
local function merge_points(rounds, name)
    local by_x, order = {}, {}
    for _, samples in ipairs(rounds) do
        for _, point in ipairs(samples[name] and samples[name].points or {}) do
            if not by_x[point.x] then
                by_x[point.x] = {}
                order[#order + 1] = point.x
            end
            table.insert(by_x[point.x], point)
        end
    end
    table.sort(order)
    local points = {}
    for i, x in ipairs(order) do
        local values, memories = {}, {}
        for _, point in ipairs(by_x[x]) do
            values[#values + 1], memories[#memories + 1] = point.value, point.memory
        end
        local middle, low, high
        if #values > 0 then
            middle, low, high = tables.spread(values)
        end
        points[i] = {x = x, value = middle, min = low, max = high, memory = median(memories)}
    end
    return #points > 0 and points or nil
end

-- Merge the latency curves of all rounds: the median at each percentile that all have.
local function merge_curves(rounds, name)
    local by_percentile, order, number = {}, {}, 0
    for _, samples in ipairs(rounds) do
        local curve = samples[name] and samples[name].curve
        number = number + (curve and 1 or 0)
        for _, point in ipairs(curve or {}) do
            if not by_percentile[point[1]] then
                by_percentile[point[1]] = {}
                order[#order + 1] = point[1]
            end
            table.insert(by_percentile[point[1]], point[2])
        end
    end
    table.sort(order)
    local curve = {}
    for _, percentile in ipairs(order) do
        if #by_percentile[percentile] == number then
            curve[#curve + 1] = {percentile, median(by_percentile[percentile])}
        end
    end
    return #curve > 1 and curve or nil
end

-- Merge the candles of all rounds, place by place: the shortest and the longest time of all rounds,
-- and the median of their means.
local function merge_candles(rounds, name)
    local by_place, list = {}, {}
    for _, samples in ipairs(rounds) do
        for _, candle in ipairs(samples[name] and samples[name].candles or {}) do
            local place = ("%s %s %s"):format(candle.servers, candle.clients, candle.kind)
            local all = by_place[place]
            if not all then
                all = {servers = candle.servers, clients = candle.clients, kind = candle.kind,
                       min = candle.min, max = candle.max, count = 0, means = {}}
                by_place[place], list[#list + 1] = all, all
            end
            all.min, all.max = math.min(all.min, candle.min), math.max(all.max, candle.max)
            all.count = all.count + (candle.count or 0)
            table.insert(all.means, candle.mean)
        end
    end
    for _, all in ipairs(list) do
        all.rounds, all.mean, all.means = #all.means, median(all.means), nil
        all.p = all.mean * 1.01
    end
    return #list > 0 and list or nil
end

local function last_with(rounds, name, key)
    for i = #rounds, 1, -1 do
        if rounds[i][name] and rounds[i][name][key] then
            return rounds[i][name][key]
        end
    end
    return nil
end

local function more_of(rounds, name, row)
    local more = {}
    for _, each in ipairs{{"p50"}, {"p99"}, {"server_us"}, {"connects"}, {"megabytes"}, {"memory"},
                          {"reply_length"}, table.unpack(row.columns or {})} do
        more[each[1]] = median(column(rounds, name, each[1]))
    end
    return more
end

local function put_spread(target, prefix, values)
    if #values == 0 then
        return
    end
    local middle, low, high = tables.spread(values)
    if prefix == "" then
        target.median, target.min, target.max = middle, low, high
    else
        target[prefix], target[prefix .. "_min"], target[prefix .. "_max"] = middle, low, high
    end
end

-- The results of the second client for this peer.
local function second_of(state, peer, row, first)
    if not state.second_rounds or #state.second_rounds == 0 then
        return nil
    end
    local name = peer.name
    local second = {name = state.second and state.second.name,
                    client = last_with(state.second_rounds, name, "client"),
                    values = column(state.second_rounds, name, "value"),
                    cpu_server = median(column(state.second_rounds, name, "cpu_server")),
                    cpu_client = median(column(state.second_rounds, name, "cpu_client"))}
    put_spread(second, "", second.values)
    if row.reference then
        put_spread(second, "ratio", ratios_of(state.second_rounds, name, row.reference))
    end
    second.of_first = second.median and first.median and second.median / first.median
    second.bottleneck = bottleneck_of(row, second.cpu_server, second.cpu_client)
    return second
end

local function summarize_peer(row, state, peer)
    local rounds, name = state.rounds, peer.name
    local got = {name = name, title = peer.title or name, version = peer.version_found,
                 command = last_with(rounds, name, "command"),
                 client = last_with(rounds, name, "client"),
                 values = column(rounds, name, "value"),
                 cpu_server = median(column(rounds, name, "cpu_server")),
                 cpu_client = median(column(rounds, name, "cpu_client")),
                 more = more_of(rounds, name, row), points = merge_points(rounds, name),
                 candles = merge_candles(rounds, name), curve = merge_curves(rounds, name),
                 skipped = last_with(rounds, name, "skipped"),
                 note = last_with(rounds, name, "note")}
    put_spread(got, "", got.values)
    if row.reference then
        put_spread(got, "ratio", ratios_of(rounds, name, row.reference))
    end
    got.bottleneck = bottleneck_of(row, got.cpu_server, got.cpu_client)
    got.second = second_of(state, peer, row, got)
    return got
end

-- ---- A row ----

local function find(peers, name)
    for _, peer in ipairs(peers) do
        if peer.name == name then
            return peer
        end
    end
    return nil
end

local function targets_of(row)
    local targets = row.target or {}
    return (targets.ratio or targets.value) and {targets} or targets
end

-- Compare our result with a target.
local function check_target(row, state, peers, target)
    local ours = find(peers, target.ours or row.ours or "sxe-httpd")
    local got = {peer = target.peer, ratio = target.ratio, value = target.value, of = target.of,
                 ours = ours and ours.name, key = target.key}
    if target.peer then
        got.got = ours and median(ratios_of(state.rounds, ours.name, target.peer, target.key))
    elseif target.key then
        got.got = ours and ours.more[target.key]
    else
        got.got = ours and ours.median
    end
    local wanted = target.ratio or target.value
    local is_more = (target.better or row.better or "more") == "more"
    got.better = is_more and "more" or "less"
    if got.got and wanted then
        got.is_met = is_more and got.got >= wanted or not is_more and got.got <= wanted
    end
    return got
end

-- A sentence for each peer for which the two clients disagree, with the second's result; nil: none.
local function disagreement_of(row, peers)
    local sentences = {}
    for _, peer in ipairs(peers) do
        local second = peer.second
        if second and second.of_first and math.abs(second.of_first - 1) > AGREE then
            sentences[#sentences + 1] = ("%s: %.2f of the rate by %s%s%s"):format(
                peer.title, second.of_first, second.name or "another", second.ratio
                and peer.name ~= row.reference and (", a ratio of %.2f"):format(second.ratio) or "",
                second.bottleneck == "client" and " at the limit of its CPU" or "")
        end
    end
    return #sentences > 0 and sentences or nil
end

-- The fields of a result's row that are copied from the row itself.
local function head_of(row)
    local head = {}
    for _, name in ipairs{"name", "title", "group", "work", "command", "checks", "void", "unit",
                          "better", "digits", "plot", "x_title", "reference", "columns", "notes",
                          "is_exact"} do
        head[name] = row[name]
    end
    head.better = head.better or "more"
    head.ours = row.ours or "sxe-httpd"
    return head
end

-- The CPUs that others took: the median of all samples.
local function lost_of(state)
    local values = {}
    for _, peer in ipairs(state.peers) do
        for _, value in ipairs(column(state.rounds, peer.name, "lost")) do
            values[#values + 1] = value
        end
    end
    return median(values)
end

-- skipped: {{name, why}, ...} of the peers that are not installed.
function result.summarize(row, state, seconds, skipped)
    local got = head_of(row)
    got.seconds, got.rounds = seconds, #state.rounds
    got.is_void, got.why_void = state.void ~= nil, state.void
    got.void_samples = state.void_samples
    got.lost = lost_of(state)
    got.peers, got.targets, got.skipped = {}, {}, skipped
    for i, peer in ipairs(state.peers) do
        got.peers[i] = summarize_peer(row, state, peer)
    end
    for i, target in ipairs(targets_of(row)) do
        got.targets[i] = check_target(row, state, got.peers, target)
    end
    for _, failed in ipairs(state.failed) do
        got.skipped[#got.skipped + 1] = {name = failed.name, why = "failed: " .. failed.why}
        got.has_failed = true
    end
    got.disagreement = disagreement_of(row, got.peers)
    got.second_why = state.second_why
    return got
end

-- ---- The file ----

function result.now()
    return os.date("!%Y-%m-%dT%H:%M:%SZ")
end

-- list: the rows that will be measured; the field `missing` names those that are not measured yet.
function result.new(machine, options, list)
    local got = {version = 2, date = result.now(), machine = machine, rows = {}, missing = {},
                 options = {rounds = options.rounds, seconds = options.seconds,
                            is_smoke = options.smoke or false}}
    for i, row in ipairs(list or {}) do
        got.missing[i] = row.name
    end
    return got
end

local function place_of(name, list)
    for i, each in ipairs(list) do
        if (each.name or each) == name then
            return i
        end
    end
    return nil
end

-- Add a row, or replace the row of the same name; order: a list of all rows.
function result.put(got, row, order)
    got.rows[place_of(row.name, got.rows) or #got.rows + 1] = row
    table.sort(got.rows, function(a, b)
        return (place_of(a.name, order) or 0) < (place_of(b.name, order) or 0)
    end)
    local place = place_of(row.name, got.missing)
    if place then
        table.remove(got.missing, place)
    end
    got.took_s = 0
    for _, each in ipairs(got.rows) do
        got.took_s = got.took_s + (each.took_s or 0)
    end
end

-- The rows of the list that are void in the result.
function result.void_of(got, list)
    local void = {}
    for _, row in ipairs(list) do
        local place = place_of(row.name, got.rows)
        if place and got.rows[place].is_void then
            void[#void + 1] = row
        end
    end
    return void
end

-- The set of names of rows that should be in the result, and are not.
function result.lacking(got)
    local set = {}
    for _, name in ipairs(got.missing) do
        set[name] = true
    end
    return set
end

-- Write a file. Returns nil or false, and why, if that failed.
local function try_to_write(path, text)
    local file, why = io.open(path, "w")
    if not file then
        return nil, why
    end
    local good, wrong = file:write(text)
    local is_closed, late = file:close()
    return good and is_closed, wrong or late
end

function result.write_file(path, text)
    local part = path .. ".part"
    local good, why = try_to_write(part, text)
    if good then
        good, why = os.rename(part, path)
    end
    if not good then
        os.remove(part)
        error(("%s cannot be written: %s"):format(path, why), 0)
    end
end

function result.save(got, path)
    result.write_file(path, json.encode(got))
end

-- Until 2026-11-22 the memory row had bytes a connection: what the process had grown by since its
-- start. That left out what a server touches at its start, and was negative where nothing grew.
local function count_whole_process(row)
    local reference
    for _, peer in ipairs(row.peers) do
        local after = peer.more and peer.more.after
        peer.median, peer.min, peer.max, peer.values = after, after, after, {after}
        reference = peer.name == row.reference and after or reference
    end
    for _, peer in ipairs(row.peers) do
        local ratio = peer.median and reference and peer.median / reference
        peer.ratio, peer.ratio_min, peer.ratio_max = ratio, ratio, ratio
    end
    row.unit, row.digits, row.title = "MiB", 1, "Memory of the server with 10,000 idle connections"
    row.work = "each connection has asked once or more, and is idle; the server's PSS"
end

-- Until 2026-11-22 the rows of many sockets named the server, though the bytes are sxe-http's.
local function name_generator(row)
    row.reference, row.ours = "sxe-http", "sxe-http"
    row.peers[1].name, row.peers[1].title = "sxe-http", "sxe-http"
end

local function modernize(row)
    if row.name == "memory" and row.unit == "bytes/connection" then
        count_whole_process(row)
    elseif row.ours == "limit" then
        name_generator(row)
    end
end

-- Read a result, also one of version 1: its rows have one common date, and it repeated whole
-- rounds.
function result.load(path)
    local file <close> = assert(io.open(path))
    local got = cjson.decode(assert(file:read("a")))
    assert(type(got) == "table" and got.rows and got.date, "it has no rows")
    got.missing = got.missing or {}
    for _, row in ipairs(got.rows) do
        row.void_samples = row.void_samples or row.void_rounds
        row.date = row.date or got.date
        modernize(row)
    end
    return got
end

return result
