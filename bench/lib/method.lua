-- SPDX-License-Identifier: MIT
--
-- What: runs the rounds of a row. A round takes one sample of each peer, in turn, each with a fresh
-- server; only the servers of peers that take long to warm up stay.
-- Place: bench.lua runs it for each row; result.lua summarizes the rounds.
--
-- A sample is void if anything was wrong in it, or if other programs took more than LOST_MAX of a
-- CPU beyond what they take in all samples of the row. A void sample is taken again at once,
-- REPEATS_MAX times at most, but not any more once PATIENCE times as many samples were void as
-- there are rounds; after that the row is void, and says why, but keeps its last samples. Only at
-- the end it is known how quiet the machine can be: rounds with a sample that is void compared with
-- that are then measured again. A peer that cannot be measured in the first round is left out; the
-- row is void only if that peer is ours or the reference.

local clients = require "clients"
local load = require "load"
local others = require "others"
local servers = require "servers"

local method = {LOST_MAX = 0.08, REPEATS_MAX = 2, ROUNDS = 7, SECOND_ROUNDS = 3}

local PATIENCE = 3 -- void samples for each round
local OVERHEAD = 0.15 -- seconds to list processes, and to start, check and stop a server
local OPENED = 20000 -- connections that are opened in a second
local WARM_UP = 1.3 -- times the measured time
local SHORTEST, LONGEST = 0.3, 2
method.BUDGET = 45

local function second_of(row)
    return row.load and not row.run and load.second_of(row.load)
end

local function second_rounds_of(row, options)
    return second_of(row) and math.min(method.rounds_of(row, options), method.SECOND_ROUNDS) or 0
end

-- Seconds of a row in which nothing is counted, without the warm-ups that are a part of each
-- sample.
local function overhead_of(row, peers, options)
    local rounds = method.rounds_of(row, options) + second_rounds_of(row, options)
    local each = OVERHEAD + (row.load and row.load.connections or 0) / OPENED
    local sum = rounds * #peers * each
    for _, peer in ipairs(peers) do
        sum = sum + (not options.smoke and peer.warm_up or 0)
    end
    return sum
end

-- Seconds that all samples of the row's second client take, which checks the first one.
local function second_time_of(row, peers, options, seconds)
    local second = second_of(row)
    return second and second_rounds_of(row, options) * #peers
                      * load.seconds_of(second, row.load, seconds) or 0
end

-- How many seconds a sample may take, so that the row keeps its budget.
function method.seconds_of(row, peers, options)
    if options.seconds or row.seconds then
        return options.seconds or row.seconds
    end
    local samples = math.max(method.rounds_of(row, options) * #peers, 1)
    local left = (row.budget or method.BUDGET) - overhead_of(row, peers, options)
    local seconds = LONGEST
    for _ = 1, 3 do -- more time for one client is less for the other: go in steps
        local rest = left - second_time_of(row, peers, options, seconds)
        seconds = math.max(SHORTEST, math.min(LONGEST, rest / samples / WARM_UP))
    end
    return seconds
end

-- Seconds that the row should take, if no sample is void.
function method.planned(row, peers, options)
    if row.run and not options.seconds then
        return row.budget or method.BUDGET
    end
    local seconds = method.seconds_of(row, peers, options)
    return overhead_of(row, peers, options) + second_time_of(row, peers, options, seconds)
           + method.rounds_of(row, options) * #peers * (row.takes or seconds * WARM_UP)
end

function method.rounds_of(row, options)
    return math.min(options.rounds or row.rounds or method.ROUNDS, row.rounds or math.maxinteger)
end

-- ---- One sample ----

local function given_of(row, more)
    local given = {service = row.service, row = row}
    for _, source in ipairs{row.context or {}, more or {}} do
        for name, value in pairs(source) do
            given[name] = value
        end
    end
    given.connections = given.connections or row.load and row.load.connections + 64
    return given
end

local function close_all(list)
    for _, each in pairs(list) do
        local _ <close> = each
    end
end

-- Call use() with the server that start() returns, then close the server. If the peer compiles code
-- that is used often, its server stays for all rounds of a row, unless something goes wrong: then
-- the server is warm from the second round on.
local function with_server(bench, peer, start, use)
    local keeps = peer.warm_up and bench.kept
    local server = keeps and bench.kept[peer.name] or start()
    local _ <close> = not keeps and server or nil
    if not keeps then
        return use(server)
    end
    bench.kept[peer.name] = server
    local good, sample = pcall(use, server)
    if not good or sample.errors then
        bench.kept[peer.name] = nil
        close_all{server}
    end
    return good and sample or {errors = tostring(sample)}
end

-- The argument `bench` of a row's run(): the house, and functions.
function method.bench(house, row)
    local bench = setmetatable({}, {__index = house})
    function bench.start(peer, more)
        local server = servers.start(house, peer, given_of(row, more))
        bench.command = bench.command or server.command
        if house.on_start then
            house.on_start(server.pids())
        end
        return server
    end
    function bench.load(server, what)
        local sample = load.run(house, server, what or row.load, row.unit)
        bench.client = bench.client or sample.client
        return sample
    end
    function bench.with(peer, start, use) return with_server(bench, peer, start, use) end
    function bench.look(server, what) return servers.look(server, what or row.load) end
    function bench.spawn(words, options)
        options = options or {}
        bench.command = bench.command or servers.command_line(words)
        local proc = servers.spawn(words, options.cpu or house.client_cpu, options.env)
        if house.on_start then
            house.on_start{proc:pid()}
        end
        return proc
    end
    return bench
end

local function run_plain(bench, row, peer, client)
    return with_server(bench, peer, function() return bench.start(peer) end, function(server)
        local what = setmetatable({by = client or peer.client and clients.find(peer.client)},
                                  {__index = row.load})
        return bench.load(server, what)
    end)
end

-- Take one sample of a peer. client: used in place of the row's client; nil: use the row's.
function method.sample(house, row, peer, client)
    local bench = method.bench(house, row)
    local who_else = row.run and others.watch() -- otherwise load.lua watches
    local good, sample
    if row.run then
        good, sample = pcall(row.run, bench, peer)
    else
        good, sample = pcall(run_plain, bench, row, peer, client)
    end
    if not good then
        sample = {errors = tostring(sample)}
    end
    sample = sample or {errors = "no result"}
    if who_else and not sample.lost then
        sample.lost, sample.lost_to, sample.stolen = who_else()
    end
    sample.command = sample.command or bench.command
    sample.client = sample.client or bench.client
    if not sample.errors and not sample.skipped and not (sample.value or sample.points
                                                         or sample.candles) then
        sample.errors = "no value"
    end
    return sample
end

-- ---- Rounds ----

local function first_line(text)
    return (text:gsub("^%s+", ""):match("^[^\n]*") or text):sub(1, 240)
end

-- Whether other programs took too much CPU. What they take in every sample of a row is the same for
-- all peers, so a sample may lose LOST_MAX more than that.
local function is_disturbed(sample, state)
    return (sample.lost or 0) > method.LOST_MAX + math.min(state.least_lost, method.LOST_MAX)
           or (sample.stolen or 0) > method.LOST_MAX
end

-- Why a sample is void (nil: it is good), and whether that is the peer's own fault.
local function why_void(house, row, peer, sample, state)
    if sample.errors then
        return peer.name .. ": " .. first_line(sample.errors), true
    elseif not house.smoke and not row.is_exact and is_disturbed(sample, state) then
        return ("%.2f CPU taken by others%s"):format(
            sample.lost, sample.lost_to and (" (%s)"):format(sample.lost_to) or "")
    end
end

local function add_void(row, state, round, peer, why)
    table.insert(state.void_samples, {round = round, peer = peer.name, why = why})
    io.stderr:write(("  %s, round %d, %s: %s\n"):format(row.name, round, peer.name, why))
end

-- Take a sample until one is good, or until it was tried often enough. Returns the sample, why it
-- is void, and whether that is the peer's fault.
local function insist(house, row, peer, state, round, client)
    local sample, why, is_fault
    local is_hopeless = house.smoke or #state.void_samples >= state.patience
    for _ = 0, is_hopeless and 0 or method.REPEATS_MAX do
        sample = method.sample(house, row, peer, client)
        state.least_lost = math.min(state.least_lost, sample.lost or 0)
        why, is_fault = why_void(house, row, peer, sample, state)
        if not why then
            return sample
        end
        add_void(row, state, round, peer, why)
    end
    return sample, why, is_fault
end

-- Run one round. Returns samples by the peers' names, why the round is void, and the peer whose
-- fault that is.
local function run_round(house, row, state, round, client)
    local samples, void = {}, nil
    for _, peer in ipairs(state.peers) do
        local sample, why, is_fault = insist(house, row, peer, state, round, client)
        samples[peer.name], void = sample, why or void
        if is_fault then
            return samples, why, peer
        end
    end
    return samples, void
end

local function without(peers, left_out)
    local list = {}
    for _, peer in ipairs(peers) do
        if peer ~= left_out then
            list[#list + 1] = peer
        end
    end
    return list
end

-- Leave out a peer that failed in the first round; false: no peer is left.
local function leave_out(row, state, culprit, why)
    state.peers = without(state.peers, culprit)
    state.failed[#state.failed + 1] = {name = culprit.name, why = why}
    if culprit.name == row.reference or culprit.name == (row.ours or "sxe-httpd") then
        state.void = why
    end
    return #state.peers > 0
end

-- Drop rounds with a sample that is void compared with the quietest sample, which may have come
-- later. Returns how many were dropped. Once the patience is used up, such rounds stay, and the row
-- is void.
local function drop_disturbed(house, row, state)
    local kept = {}
    for number, samples in ipairs(state.rounds) do
        local is_good = true
        for _, peer in ipairs(state.peers) do
            local why = why_void(house, row, peer, samples[peer.name], state)
            if why then
                is_good = #state.void_samples >= state.patience
                state.void = is_good and why or state.void
                add_void(row, state, number, peer, why)
            end
        end
        kept[#kept + 1] = is_good and samples or nil
    end
    local dropped = #state.rounds - #kept
    state.rounds = kept
    return dropped
end

local function run_all(house, row, state, rounds)
    local number = 1
    while number <= rounds do
        local samples, why, culprit = run_round(house, row, state, number)
        if culprit and number == 1 then
            if not leave_out(row, state, culprit, why) then
                return
            end
        else
            if why then
                state.void = why
            end
            if not culprit then
                state.rounds[#state.rounds + 1] = samples
            end
            number = number + 1
        end
        if number > rounds and not state.void then
            rounds = rounds + drop_disturbed(house, row, state)
        end
    end
end

-- Run the row's load by its second client, in fewer rounds, and compare the results of both clients.
local function run_second(house, row, state)
    local second = second_of(row)
    if not second or #state.rounds == 0 or (house.smoke and house.has_second) then
        return
    end
    house.has_second = true
    state.second, state.second_rounds = second, {}
    for number = 1, math.min(#state.rounds, method.SECOND_ROUNDS) do
        local samples, why, culprit = run_round(house, row, state, number, second)
        if culprit then
            state.second, state.second_why = nil, second.name .. ": " .. why
            return
        end
        state.second_rounds[number] = samples
        state.second_why = why or state.second_why
    end
end

-- Write the files that the row's servers serve.
function method.write_files(house, row)
    for name, content in pairs(row.files or {}) do
        local file <close> = assert(io.open(house.root .. "/" .. name, "wb"))
        file:write(content)
    end
end

-- Run all rounds of a row. state: {rounds = {{[name] = sample}, ...}, peers, void = why or nil,
-- void_samples, failed, second, second_rounds, second_why}
function method.run(house, row, peers)
    local state = {rounds = {}, void_samples = {}, failed = {}, peers = peers,
                   least_lost = math.huge,
                   patience = PATIENCE * method.rounds_of(row, house.options)}
    local kept <close> = setmetatable({}, {__close = close_all})
    house.kept = kept -- by peer's name: the servers that stay for all rounds
    house.seconds = method.seconds_of(row, peers, house.options)
    method.write_files(house, row)
    run_all(house, row, state, method.rounds_of(row, house.options))
    if #state.rounds == 0 then
        state.void = state.void or "no round was good"
    end
    run_second(house, row, state)
    return state
end

return method
