-- SPDX-License-Identifier: MIT
-- Pipelined GETs by sxe.redis, for the row redis-pipeline. The arguments are the socket of Redis, and a count. It does
-- what bench/redis-get.c does.
local redis = require "sxe.redis"
local KEYS <const>, DEPTH <const>, VALUE_SIZE <const> = 1000, 100, 100

collectgarbage "generational" -- the replies are garbage at once

local db = redis.new{unix = arg[1], size = 1}
local count = tonumber(arg[2])
local pipeline = db:pipeline()
local keys = {}

for i = 0, KEYS - 1 do
    keys[i] = "key:" .. i
    assert(db:set(keys[i], ("v"):rep(VALUE_SIZE)))
end

local function say(what, seconds)
    print(("%s %.6f"):format(what, seconds))
    io.stdout:flush()
end

-- Send DEPTH commands, and take their replies.
local function get_some(first)
    for i = first, first + DEPTH - 1 do pipeline:get(keys[i % KEYS]) end
    local list = assert(pipeline:exec())
    for i = 1, DEPTH do
        if #list[i] ~= VALUE_SIZE then error "a wrong reply" end
    end
end

for i = 0, KEYS - 1, DEPTH do get_some(i) end
local start = os.clock()
say("begin", 0)
for i = 0, count - 1, DEPTH do get_some(i % KEYS) end
say("end", os.clock() - start)
