---@meta sxe.redis
-- SPDX-License-Identifier: MIT

---@class sxe.redis
---@field null lightuserdata a null of the server; json.null
local redis = {}

---@class sxe.redis.options
---@field host? string 127.0.0.1
---@field port? integer 6379
---@field unix? string the path of a socket, in place of host and port
---@field user? string
---@field password? string
---@field db? integer for SELECT, 0
---@field size? integer connections at most, 4
---@field timeout? sxe.seconds of a command, 5
---@field reply_max? integer bytes of a reply, 64 MiB
---@field protocol? 2|3 3

---Any other name in small letters sends the command of that name: db:hget("hash", "field").
---@class sxe.Redis
---@field [string] fun(db: sxe.Redis, ...: string|number): any, sxe.error?, string|sxe.code?
local Redis = {}

---Send a command, and wait for its reply; nil, message, and the first word of an error.
---@param name string
---@param ... string|number
---@return any value, sxe.error? why, string|sxe.code? code
function Redis:call(name, ...) end

---Its commands fail, "closed".
function Redis:close() end

---@param options sxe.redis.options
---@return sxe.Redis
function redis.new(options) end

return redis
