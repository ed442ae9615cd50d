---@meta sxe.realm
-- SPDX-License-Identifier: MIT

---Isolated Lua states with limits of memory and CPU time; see docs/realms.md.
---@class sxe.realm
local realm = {}

---@class sxe.realm.options
---@field code? string either code or file, or neither; at most 64 KiB
---@field file? string
---@field name? string at most 31 bytes; "realm"
---@field memory_max? integer|string bytes, or "64K" to "256M"; "1M"
---@field time_max_ms? integer of CPU time in each call; 50
---@field require? string[] modules that the realm may require
---@field offer? table<string, function> functions that the realm may call, its globals

---Why a call failed.
---@alias sxe.realm.kind "time"|"memory"|"error"

---@class sxe.Realm
---@field name string
---@field status "ready"|"running"|"closed"
local Realm = {}

---Call a function of the realm's code, and return copies of its results. A call that fails is nil, the error and its
---kind; the realm can be used again.
---@param name string
---@param ... any
---@return any ...
function Realm:call(name, ...) end

---Run a text in the realm, and return copies of its results. A text that fails is nil, the error and its kind.
---@param text string
---@param ... any
---@return any ...
function Realm:run(text, ...) end

---Return the bytes that the realm has, and the most that it had.
---@return integer bytes, integer most
function Realm:memory() end

---Free the realm. This raises an error while a call runs in it.
function Realm:close() end

---Make a realm, a Lua state with limits, and run its code once. It is nil, the error and its kind if the code fails or
---memory is missing; wrong options raise an error. Close the realm, or keep it in a <close> variable.
---@param options? sxe.realm.options
---@return sxe.Realm? realm, any why, sxe.realm.kind|sxe.code? kind
function realm.new(options) end

return realm
