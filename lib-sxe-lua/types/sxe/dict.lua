---@meta sxe.dict
-- SPDX-License-Identifier: MIT

---Keys and values that processes share, and that outlive them.
---@class sxe.dict
local dict = {}

---@class sxe.dict.opening
---@field name? string may be left out with cells, for a file that is there
---@field cells? integer an entry takes one, or more
---@field cell_size? integer bytes, a multiple of 64: 256
---@field shards? integer 1, 2, 4 ... 64
---@field evicts? boolean without room, what was not used for longest is forgotten
---@field file? string a path; without a '/', a name in /dev/shm
---@field shared? boolean in memory, with those that this process forks
---@field repair? boolean make it again of what is whole
---@field wait? sxe.seconds try so long while others have the lock: 0.1
---@field verified? boolean compare sums when an entry is read: true for files, false for memory

---@alias sxe.dict.state "live"|"pinned"|"dirty"

---@class sxe.Dict
---@field name string
---@field found "created"|"joined"|"closed"|"completed"|"rebuilt"
---@operator len: integer
local Dict = {}

---Return the number of entries, with those that have expired but were not removed yet.
---@return integer
function Dict:count() end

---Close the dict: each later call raises an error. A <close> variable does so at the end of its scope.
function Dict:close() end

---Return the value of a key, and make its entry the one that was used last. A missing key is nil; nil, "busy", 11 means
---that another process holds the lock.
---@param key string
---@return string? value, sxe.error? why, integer? code
function Dict:get(key) end

---Return the value of a key. Unlike get, this does not count as a use.
---@param key string
---@return string? value, sxe.error? why, integer? code
function Dict:peek(key) end

---Store a value, which lives for `ttl` seconds. A full dict without `evicts` gives nil, message, 28; nil, "busy", 11
---means that another process holds the lock.
---@param key string
---@param value string
---@param ttl? sxe.seconds for ever
---@return true? done, sxe.error? why, integer? code
function Dict:put(key, value, ttl) end

---Store the new value if the present one is `old`, in one step. An `old` of nil means that there is no entry. Returns
---whether it did.
---@param key string
---@param old string?
---@param new string
---@param ttl? sxe.seconds for ever
---@return boolean? done, sxe.error? why, integer? code
function Dict:cas(key, old, new, ttl) end

---Add n to a counter, and return the sum. A missing counter begins at 0, and lives for ttl.
---@param key string
---@param n? integer 1
---@param ttl? sxe.seconds for ever
---@return integer? sum, sxe.error? why, integer? code
function Dict:add(key, n, ttl) end

---Return the value of a counter, or nil if there is none. A value that has not the 8 bytes of a counter is
---nil, message, 33.
---@param key string
---@return integer? value, sxe.error? why, integer? code
function Dict:counter(key) end

---Remove an entry. Returns false if there is none.
---@param key string
---@return boolean? done, sxe.error? why, integer? code
function Dict:remove(key) end

---Make the entry the one that was used last.
---@param key string
---@return boolean? done, sxe.error? why, integer? code
function Dict:touch(key) end

---Give an entry a new time to live, which starts now. Returns false if there is no such entry.
---@param key string
---@param ttl? sxe.seconds for ever
---@return boolean? done, sxe.error? why, integer? code
function Dict:expire(key, ttl) end

---Return the seconds that an entry has left to live, math.huge for ever, or nil without an entry.
---@param key string
---@return number? seconds, sxe.error? why, integer? code
function Dict:ttl(key) end

---Set the state of an entry. A pinned or dirty entry is not evicted.
---@param key string
---@param state sxe.dict.state
---@return boolean? done, sxe.error? why, integer? code
function Dict:mark(key, state) end

---Iterate over keys, values, seconds to live and states, in no order. Entries may come and go meanwhile.
---@return fun(): string?, string?, number?, sxe.dict.state?
function Dict:each() end

---Change several entries at once, or none. In a table, false removes an entry. False: a condition does not hold.
---@param entries table<string, string|false>|fun(batch: sxe.DictBatch)
---@param ttl? sxe.seconds of those in a table
---@return boolean? done, sxe.error? why, integer? code
function Dict:batch(entries, ttl) end

---Make a snapshot, a view of the dict as it is now. Close it: until then it keeps the room of replaced values. 16 may
---be open.
---@return sxe.DictSnapshot? snapshot, sxe.error? why, integer? code
function Dict:snapshot() end

---Check the whole dict. A damaged one is nil, message, 117. The loop waits meanwhile.
---@return true? good, sxe.error? why, integer? code
function Dict:check() end

---Write the dict to the disk, and wait for the disk. Nothing else in this process runs meanwhile.
---@return true? done, sxe.error? why, integer? code
function Dict:sync() end

---Return the counts of all processes since the dict was made.
---@return { hits: integer, misses: integer, evictions: integer, expirations: integer } stats
function Dict:stats() end

---Return the lengths of the chains of the hash table. This looks at all of them.
---@return { buckets: integer, used: integer, versions: integer, longest: integer }? chains, sxe.error? why, integer? code
function Dict:chains() end

---@class sxe.DictBatch
local DictBatch = {}

---Add a change to the batch, which sets a value. Nothing is stored before the function of the batch has returned; after
---that, the call raises an error.
---@param key string
---@param value string
---@param ttl? sxe.seconds for ever
function DictBatch:put(key, value, ttl) end

---Add a change to the batch, which removes an entry. It is no error if there is none.
---@param key string
function DictBatch:remove(key) end

---Add a condition: the batch is done only if the key has this value; nil: only if it has none.
---@param key string
---@param value string?
function DictBatch:expect(key, value) end

---@class sxe.DictSnapshot
local DictSnapshot = {}

---Return the value that a key had when the snapshot was made. It is nil, message, 116 when the dict needed the room of
---the snapshot, and ended it.
---@param key string
---@return string? value, sxe.error? why, integer? code
function DictSnapshot:get(key) end

---Iterate over the keys, values, seconds to live and states of the snapshot, in no order.
---@return fun(): string?, string?, number?, sxe.dict.state?
function DictSnapshot:each() end

---Close the snapshot, so that the dict can use the room of replaced values. A <close> variable does so at the end of
---its scope. Later calls raise an error.
function DictSnapshot:close() end

---Make a dict, or open one that is in a file. Call it where the script begins, because it reserves the memory and
---checks the whole dict. A dict in a file outlives all processes; a file that cannot be used is nil, message, code.
---@param options sxe.dict.opening
---@return sxe.Dict? dict, sxe.error? why, integer? code
function dict.open(options) end

return dict
