-- SPDX-License-Identifier: MIT
-- S6: a hash of 100 texts, 1,000 times a random letter each, is set in Redis, read back, and its
-- texts are sent. The argument is the port of Redis.
local redis = require "sxe.redis"
local FIELDS = 100

collectgarbage "generational" -- texts are garbage at once

local db = redis.new{port = tonumber(arg[1]), size = 10}

return function(req)
    local words, texts = {}, {}

    for i = 1, 2 * FIELDS, 2 do
        words[i] = "field-" .. (i + 1) // 2
        -- rep() copies piece by piece: 65 pieces, not 1,000.
        words[i + 1] = string.char(math.random(97, 122)):rep(40):rep(25)
    end
    local key = "lua-" .. req.id
    assert(db:del(key))
    assert(db:hmset(key, table.unpack(words)))
    for _, text in pairs(assert(db:hgetall(key))) do
        texts[#texts + 1] = text
    end
    assert(db:del(key))
    return table.concat(texts)
end
