-- SPDX-License-Identifier: MIT
--
-- usage: sxe-lua soak-redis-load.lua COUNT SEED MARKS unix:PATH          numbered commands to one server
--        sxe-lua soak-redis-load.lua COUNT SEED MARKS HOST:PORT...       and to a cluster of which these are nodes
--
-- The load of redis.lua. Each command has a number of its own, from 1 to COUNT, which its reply must have, too:
--
--     ECHO number, EVAL "return ARGV[1]" number            the number
--     HINCRBY once:{number // 128} number number           the number; if it was executed twice: two times that
--     RPUSH list:number number; BLPOP list:number          the number
--     SUBSCRIBE channel:number; PUBLISH channel:number     the number
--
-- Tasks send them alone, in pipelines and in transactions. Some tasks are cancelled at random, some commands go to a
-- client with a timeout of some milliseconds, and now and then a client is closed under its commands.
--
-- It prints "at NUMBER" MARKS times. When all commands have ended, it prints "ended", and waits until the key {0}quiet
-- says that the server is left alone from now on. Then it reads what the server counted, and prints a line of
-- "name=number". Messages of errors that nobody expects are lines that begin with "odd:".

local redis, task = require "sxe.redis", require "sxe.task"

local COUNT <const>, SEED <const>, MARKS <const> = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])
local UNIX <const> = arg[4]:match "^unix:(.*)$"
local TASKS <const> = 48
local BUCKET <const> = 128 -- numbers of a hash: so many entries are stored without a table
local PATIENT <const>, HASTY <const> = 60, 0.004 -- seconds
local ODD_SHOWN <const> = 20

local FAULT <const> = os.getenv "SOAK_FAULT"

math.randomseed(SEED)

local sums = {good = 0, wrong = 0, cut = 0, failed = 0, odd = 0, closed = 0}
local told = {} -- by number: the client was told that the server has counted it
local number = 0 -- the last one that was given out

-- ---- Clients ----

local function open(timeout)
    if UNIX then return redis.new{unix = UNIX, timeout = timeout, size = 4, handles = 12} end
    return redis.cluster{seeds = {table.unpack(arg, 4)}, timeout = timeout, size = 3, handles = 8}
end

local patient, hasty = open(PATIENT), open(HASTY)

local function client()
    return math.random(8) == 1 and hasty or patient
end

-- Close a client that others use at this moment.
local function close_one()
    sums.closed = sums.closed + 1
    if math.random(2) == 1 then
        patient:close()
        patient = open(PATIENT)
    else
        hasty:close()
        hasty = open(HASTY)
    end
end

-- ---- Commands, each of which returns whether the reply was the number's own; or nil, why ----

local function take_numbers(count)
    local first = number + 1
    number = number + count
    if number * MARKS // COUNT > (first - 1) * MARKS // COUNT then print("at " .. number) end
    return first
end

local function key_of(n)
    return "once:{" .. n // BUCKET .. "}"
end

local function is_own(reply, n)
    return tonumber(reply) == n
end

local function has_counted(reply, n)
    if is_own(reply, n) then told[n] = true end
    return is_own(reply, n)
end

-- Make the fault that SOAK_FAULT asks for, once: the verdict must name it.
local has_failed = false
local function make_fault(name)
    if FAULT ~= name or has_failed or number < COUNT // 2 then return false end
    has_failed = true
    return true
end

local function say(db)
    local n = take_numbers(1)
    local reply, why
    if UNIX then reply, why = db:echo(n) else reply, why = db:eval("return ARGV[1]", 1, key_of(n), n) end
    if not reply then return nil, why end
    return is_own(reply, make_fault "wrong" and n + 1 or n)
end

local function count(db)
    local n = take_numbers(1)
    local reply, why = db:hincrby(key_of(n), n, n)
    if not reply then return nil, why end
    if make_fault "twice" then db:hincrby(key_of(n), n, n) end
    return has_counted(reply, n)
end

-- Look at the replies of commands whose numbers are `first` and the following ones: those with an odd place say, the
-- others count.
local function look(list, first)
    local why
    for i, reply in ipairs(list) do
        local n = first + i - 1
        if type(reply) == "table" then
            why = reply.error
        elseif not is_own(reply, n) then
            return false
        elseif i % 2 == 0 then
            told[n] = true
        end
    end
    if why then return nil, why end
    return true
end

local function add(to, key, first, length)
    for i = 1, length do
        local n = first + i - 1
        if i % 2 == 1 then to:eval("return ARGV[1]", 1, key or key_of(n), n) else to:hincrby(key or key_of(n), n, n) end
    end
end

local function pipeline(db)
    local length = math.random(2, 12)
    local first = take_numbers(length)
    local p <close> = db:pipeline()
    add(p, nil, first, length)
    local list, why = p:exec()
    if not list then return nil, why end
    if #list ~= length then return false end
    return look(list, first)
end

-- The numbers of a transaction are in one hash, so that it works in a cluster, too.
local function transaction(db)
    local first = take_numbers(4)
    local key = key_of(first)
    local is_wrong = false
    local list, why = db:transaction(function(t)
        local reply = t:eval("return ARGV[1]", 1, key, first)
        is_wrong = is_wrong or reply ~= nil and not is_own(reply, first)
        t:multi()
        for i = 1, 3 do
            local n = first + i
            if i == 2 then t:eval("return ARGV[1]", 1, key, n) else t:hincrby(key .. "t", n, n) end
        end
    end, {watch = {key .. "w"}})
    if is_wrong then return false end
    if not list then return nil, why end
    return has_counted(list[1], first + 1) and is_own(list[2], first + 2) and has_counted(list[3], first + 3)
end

local function block(db)
    local n = take_numbers(1)
    local key = "list:" .. n
    local reply, why = db:rpush(key, n)
    if not reply then return nil, why end
    local list, why_not = db:blpop(key, 60)
    if not list then return nil, why_not end
    return list ~= redis.null and list[1] == key and is_own(list[2], n)
end

local function subscribe(db)
    local n = take_numbers(1)
    local name = "channel:" .. n
    local sub <close>, why = db:subscribe{name}
    if not sub then return nil, why end
    local reply, why_not = db:publish(name, n)
    if not reply then return nil, why_not end
    local message, why_none = sub:read(0.2) -- the message of a node that failed never comes
    if not message then return nil, why_none end
    return message.channel == name and is_own(message.text, n)
end

local function script(db)
    local n = take_numbers(1)
    local run = db:prepare "return redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[1])"
    local reply, why = run({key_of(n)}, n)
    if not reply then return nil, why end
    return has_counted(reply, n)
end

-- Of a hundred: 40 that say, and so on.
local KINDS <const> = {
    {40, say, "say"}, {34, count, "count"}, {14, pipeline, "pipeline"}, {4, transaction, "transaction"},
    {4, block, "block"}, {1, subscribe, "subscribe"}, {3, script, "script"},
}

local function kind_of(choice)
    for _, kind in ipairs(KINDS) do
        choice = choice - kind[1]
        if choice <= 0 then return kind[2], kind[3] end
    end
end

-- ---- Ends of commands ----

-- Why a command may fail here. Anything else is odd.
local EXPECTED <const> = {
    "^timeout$", "^cancelled$", "^closed$", "^redis: the connection ended before the reply$", ": Connection refused$",
    ": Connection reset by peer$", ": Broken pipe$", ": Software caused connection abort$",
    "^redis: the connection ended$", ": No such file or directory$",
    "^redis: the command before it in its connection was cut off$",
    "^redis: the task that %a+ for others ended$",
    "^LOADING ", "^READONLY ", "^CLUSTERDOWN ", "^MASTERDOWN ", "^TRYAGAIN ", "^UNBLOCKED ",
    "^redis: a watched key changed, ",
}

local function is_expected(why)
    for _, pattern in ipairs(EXPECTED) do
        if why:find(pattern) then return true end
    end
    return false
end

local function note(name, is_good, why)
    if is_good then
        sums.good = sums.good + 1
    elseif is_good == false then
        sums.wrong = sums.wrong + 1
    elseif why == "cancelled" then
        sums.cut = sums.cut + 1
    else
        sums.failed = sums.failed + 1
    end
    if is_good == nil and not is_expected(tostring(why)) then
        sums.odd = sums.odd + 1
        if sums.odd <= ODD_SHOWN then print(("odd: %s: %s"):format(name, why)) end
    end
end

-- A task that is cancelled after some turns, or some milliseconds.
local function run_cut(kind)
    local one = task.start(kind, client())
    if math.random(2) == 1 then
        for _ = 1, math.random(0, 5) do task.sleep(0) end
    else
        task.sleep(math.random() * 0.01)
    end
    one:cancel()
    return one:join()
end

-- While there is no server, do not use up the numbers.
local function await_server()
    while not patient:get "{0}alive" do task.sleep(0.02) end
end

local function work()
    while number < COUNT do
        local choice, kind, name = math.random(200), kind_of(math.random(100))
        local is_good, why
        if choice <= 20 then
            is_good, why = run_cut(kind)
        else
            is_good, why = kind(client())
        end
        note(name, is_good, why)
        if is_good == nil and why ~= "cancelled" and why ~= "timeout" then await_server() end
        if choice == 200 and math.random(20) == 1 then close_one() end
    end
end

-- ---- What the server counted ----

local function servers()
    return UNIX and {patient} or assert(patient:masters())
end

-- Read a hash of counts by number: how many were counted twice. Counts that the client was not told may be missing.
local function look_at_hash(server, key, counted)
    local twice = 0
    local all = assert(server:hgetall(key))
    for n, value in pairs(all) do
        if not is_own(value, tonumber(n)) then twice = twice + 1 end
        counted[tonumber(n)] = true
    end
    return twice
end

local function look_at_server()
    local counted, twice, lists = {}, 0, 0
    for _, server in ipairs(servers()) do
        for _, key in ipairs(assert(server:keys "once:*")) do twice = twice + look_at_hash(server, key, counted) end
        for _, key in ipairs(assert(server:keys "list:*")) do
            lists = lists + 1
            if assert(server:llen(key)) > 1 then twice = twice + 1 end
        end
    end
    local lost, known, untold = 0, 0, 0
    for n in pairs(told) do
        known = known + 1
        if not counted[n] then lost = lost + 1 end
    end
    for n in pairs(counted) do untold = untold + (told[n] and 0 or 1) end
    sums.twice, sums.lost, sums.told, sums.untold, sums.lists = twice, lost, known, untold, lists
end

io.stdout:setvbuf "line"
await_server()
local workers = {}
for i = 1, TASKS do workers[i] = task.start(work) end
for _, one in ipairs(workers) do assert(one:join() or true) end
hasty:close()
print "ended"
while patient:get "{0}quiet" ~= "yes" do task.sleep(0.02) end
patient:close()
patient = open(PATIENT) -- its map of a cluster is new
look_at_server()
sums.numbers = number
local words = {}
for name, value in pairs(sums) do words[#words + 1] = ("%s=%d"):format(name, value) end
table.sort(words)
print("sums: " .. table.concat(words, " "))
