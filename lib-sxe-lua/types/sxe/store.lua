---@meta sxe.store
-- SPDX-License-Identifier: MIT

---Ordered keys and values in a file, which processes share. It is there in programs that were built with LMDB.
---@class sxe.store
local store = {}

---@class sxe.store.options
---@field map_size? integer the most bytes that the file may have; 1 GiB
---@field sync? "full"|"meta"|"none" "full"
---@field readers? integer places for readers of all processes; 2046
---@field snapshot_max? integer seconds after which a snapshot is closed; 60
---@field read_only? boolean
---@field mode? integer permissions of a new file; 0600
---@field timeout? number seconds

---Open a file, and make it if there is none.
---@param path string
---@param options? sxe.store.options
---@return sxe.Store? db
---@return string? message
---@return integer? code
function store.open(path, options) end

---@class sxe.store.range
---@field prefix? string the keys that begin with it
---@field from? string this key and larger ones
---@field to? string smaller keys than this one
---@field reverse? boolean from the last to the first

---@class sxe.Store
local Store = {}

---@param key string
---@return string? value
function Store:get(key) end

---@param key string
---@param value string
---@param timeout? number
---@return boolean? done
---@return string? message
---@return integer? code
function Store:put(key, value, timeout) end

---@param key string
---@param timeout? number
---@return boolean? was_there
function Store:del(key, timeout) end

---Set a value, or remove it for nil, if it is what is expected, nil for none.
---@param key string
---@param expected? string
---@param value? string
---@param timeout? number
---@return boolean? done
function Store:cas(key, expected, value, timeout) end

---Make changes at once: all of them or none. The function may be called again.
---@param make fun(txn: sxe.StoreTransaction): ...
---@param options? {timeout: number}
---@return boolean? done
---@return any ... what the function returned
function Store:write(make, options) end

---@param options? sxe.store.range
---@return fun(_: any, key?: string): string?, string?
function Store:each(options) end

---@return sxe.StoreSnapshot? snapshot
function Store:snapshot() end

---@param path string
---@param options? {compact: boolean, timeout: number}
---@return boolean? done
function Store:copy(path, options) end

---@param timeout? number
---@return boolean? done
function Store:sync(timeout) end

---@param map_size integer
---@param timeout? number
---@return boolean? done
function Store:resize(map_size, timeout) end

---@return table<string, integer> numbers
function Store:stats() end

function Store:close() end

---The store as it was at one moment.
---@class sxe.StoreSnapshot
local Snapshot = {}

---@param key string
---@return string? value
function Snapshot:get(key) end

---@param options? sxe.store.range
---@return fun(_: any, key?: string): string?, string?
function Snapshot:each(options) end

function Snapshot:close() end

---@class sxe.StoreTransaction
local Transaction = {}

---@param key string
---@return string? value
function Transaction:get(key) end

---@param key string
---@param value string
function Transaction:put(key, value) end

---@param key string
function Transaction:del(key) end

---@param options? sxe.store.range
---@return fun(): string?, string?
function Transaction:each(options) end

return store
