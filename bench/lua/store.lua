-- SPDX-License-Identifier: MIT
-- Gets and puts by sxe.store, for the rows store-get and store-put. The arguments are the operation, a count, and a
-- file. It does what bench/store-lmdb.c does, whose comment explains the operations. With the word dict after them it
-- does the same with a dict in memory, which has no transactions.
local dict, store, task = require "sxe.dict", require "sxe.store", require "sxe.task"
local ENTRIES <const>, BATCH <const>, VALUE_SIZE <const> = 100000, 1000, 100

-- Values are garbage at once. If it is collected often, the next values take memory that the processor's cache has.
collectgarbage("generational", 5)

local what, count, path = arg[1], tonumber(arg[2]), arg[3]
local is_dict = arg[4] == "dict"
local db = is_dict and assert(dict.open{name = "bench", cells = ENTRIES + ENTRIES // 4, cell_size = 192})
           or assert(store.open(path, {sync = what == "put" and "full" or "none"}))
local value, keys, order, seed = ("v"):rep(VALUE_SIZE), {}, {}, 1

for i = 1, ENTRIES do keys[i] = ("session-%08x"):format((i - 1) * 2654435761 & 0xffffffff) end
for i = 1, ENTRIES do -- as many random keys
    seed = seed * 1103515245 + 12345 & 0xffffffff
    order[i] = keys[(seed >> 8) % ENTRIES + 1]
end

local function say(name, seconds)
    print(("%s %.6f"):format(name, seconds))
    io.stdout:flush()
end

local function put_batches(list, number)
    for i = 0, number - 1, BATCH do
        local function put_some(to)
            for j = i % ENTRIES + 1, i % ENTRIES + BATCH do to:put(list[j], value) end
        end
        if is_dict then put_some(db) else assert(db:write(put_some)) end
    end
end

local function get_all(from)
    for i = 0, count - 1, ENTRIES do
        for j = 1, math.min(ENTRIES, count - i) do
            if #from:get(order[j]) ~= VALUE_SIZE then error "a wrong value" end
        end
    end
end

-- In a task, as in a handler: at the top level, before the loop runs, no thread would write.
task.start(function()
    put_batches(keys, ENTRIES)
    local start = os.clock()
    say("begin", 0)
    if what == "get" and not is_dict then
        local snapshot <close> = assert(db:snapshot())
        get_all(snapshot)
    elseif what:find "^get" then
        get_all(db)
    else
        put_batches(order, count)
    end
    say("end", os.clock() - start)
end):join()
