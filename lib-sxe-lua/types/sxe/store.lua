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

---Return the value of a key, or nil if there is none. It reads the newest commit at once; data that is not in the
---kernel's cache makes the loop wait for the disk.
---@param key string
---@return string? value
function Store:get(key) end

---Set a value, and wait until the change is committed. After nil, "timeout" the change may still be made. A full map is
---nil, message, 28.
---@param key string
---@param value string
---@param timeout? number
---@return boolean? done
---@return string? message
---@return integer? code
function Store:put(key, value, timeout) end

---Remove a key, and wait until the change is committed. Returns false if there was none.
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

---Iterate over keys and values, in the order of the bytes of the keys. The loop sees one moment of the store; it raises
---an error if the walk fails.
---@param options? sxe.store.range
---@return fun(_: any, key?: string): string?, string?
function Store:each(options) end

---Return a view of the store as it is now. Close it soon, because the file grows while it is open; it is closed after
---`snapshot_max` seconds. More than 256 snapshots are nil, message, 24.
---@return sxe.StoreSnapshot? snapshot
function Store:snapshot() end

---Write a copy of one moment to another file, while others write. It replaces only an empty file, or a store that no
---process has open: an open one is nil, message, 16, any other file 124.
---@param path string
---@param options? {compact: boolean, timeout: number}
---@return boolean? done
function Store:copy(path, options) end

---Wait until all commits are on the disk. This is of use with `sync` "meta" or "none".
---@param timeout? number
---@return boolean? done
function Store:sync(timeout) end

---Change the largest size of the file. It is nil, message, 16 while this process has snapshots or copies.
---@param map_size integer
---@param timeout? number
---@return boolean? done
function Store:resize(map_size, timeout) end

---Return the numbers of the store: its entries, pages, readers, snapshots and map size.
---@return table<string, integer> numbers
function Store:stats() end

---Close the handle of the store. The file is closed with its last handle, snapshot and call in progress. A <close>
---variable does so at the end of its scope.
function Store:close() end

---The store as it was at one moment.
---@class sxe.StoreSnapshot
local Snapshot = {}

---Return the value that a key had when the snapshot was made, or nil. It is nil, message, 116 when the snapshot was
---closed after `snapshot_max`.
---@param key string
---@return string? value
function Snapshot:get(key) end

---Iterate over the keys and values of the snapshot, as Store:each does.
---@param options? sxe.store.range
---@return fun(_: any, key?: string): string?, string?
function Snapshot:each(options) end

---Close the snapshot, so that the file can use its pages again. A <close> variable does so at the end of its scope.
function Snapshot:close() end

---@class sxe.StoreTransaction
local Transaction = {}

---Return the value of a key, with the changes of this transaction. If another write changes it before the commit, the
---function is called again.
---@param key string
---@return string? value
function Transaction:get(key) end

---Collect a change that sets a value. It is made when the function has returned; after that the call raises an error.
---@param key string
---@param value string
function Transaction:put(key, value) end

---Collect a change that removes a key. It is made when the function has returned; after that the call raises an error.
---@param key string
function Transaction:del(key) end

---Iterate over keys and values, with the changes of this transaction. After this, any other write before the commit has
---the function called again.
---@param options? sxe.store.range
---@return fun(): string?, string?
function Transaction:each(options) end

return store
