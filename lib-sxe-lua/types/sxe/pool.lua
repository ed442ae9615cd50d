---@meta sxe.pool
-- SPDX-License-Identifier: MIT

---Records with states and typed fields.
---@class sxe.pool
local pool = {}

---@class sxe.pool.opening
---@field name? string may be left out with count, states and fields, for a file that is there
---@field count? integer elements
---@field states? string[] the first is that of free ones
---@field fields? table<string, string>|string|string[] u8 to u64, i8 to i64, f32, f64, bool, char[n]
---@field timeouts? table<string, sxe.seconds> of states
---@field on_timeout? fun(element: sxe.Element, lease: sxe.lease) otherwise back to the first state
---@field file? string a path; without a '/', a name in /dev/shm
---@field shared? boolean in memory, with those that this process forks
---@field shards? integer 1, 2, 4 ... 64
---@field exact? boolean take the oldest of all shards
---@field repair? boolean make lists again that are damaged
---@field wait? sxe.seconds try so long while others have the lock: 0.1
---@field verified? boolean compare the sum of a file that was closed: true

---Each move or touch of an element gives it another lease. To move, touch or write an element with an older lease does
---nothing: nil, "lost".
---@alias sxe.lease integer

---@class sxe.Pool
---@field name string
---@field found "created"|"joined"|"closed"|"completed"|"rebuilt"
---@operator len: integer
local Pool = {}

---Move the oldest element of one state to another, and return it; nil: the state has no element.
---@param from string
---@param to string
---@param timeout? sxe.seconds wait for one
---@return sxe.Element? element, sxe.lease|sxe.error? lease, integer? code
function Pool:take(from, to, timeout) end

---Move an element to another state, where it is the youngest. Returns the element and its new lease; or nil, "moved" if
---it is in another state than `from`, "lost" if the lease is not its last one, or "gone" if it has returned to the
---first state.
---@param element sxe.Element|integer
---@param to string
---@param from? string only if it is there
---@param lease? sxe.lease only if it is held
---@return sxe.Element? element, sxe.lease|sxe.error? lease, integer? code
function Pool:move(element, to, from, lease) end

---Make the element the youngest of its state.
---@param element sxe.Element|integer
---@param lease? sxe.lease only if it is held
---@return sxe.Element? element, sxe.lease|sxe.error? lease, integer? code
function Pool:touch(element, lease) end

---Return the count of elements in a state.
---@param state string
---@return integer
function Pool:count(state) end

---Return the element that came into a state first, or nil if the state has none. It stays there: Pool:take moves it.
---@param state string
---@return sxe.Element?
function Pool:oldest(state) end

---Return the seconds since the oldest element came into the state, or nil if the state has none.
---@param state string
---@return number?
function Pool:age(state) end

---Return the element of an index, from 0. An index that the pool does not have raises an error.
---@param index integer
---@return sxe.Element
function Pool:at(index) end

---Iterate over the elements of a state, oldest first. The loop may move them.
---@param state string
---@return fun(): sxe.Element?
function Pool:each(state) end

---Add to a field, and return the sum. A sum that does not fit raises an error, or wraps in a shared pool.
---@param element sxe.Element|integer
---@param field string
---@param n? number 1
---@return number? sum, sxe.error? why
function Pool:add(element, field, n) end

---Read all fields of an element, as they are at one moment.
---@param element sxe.Element|integer
---@return table<string, any>? fields, sxe.error? why, integer? code
function Pool:read(element) end

---Write all fields of an element at once; a field without a value becomes 0.
---@param element sxe.Element|integer
---@param fields table<string, any>
---@param lease? sxe.lease only if it is held
---@return sxe.Element? element, sxe.lease|sxe.error? lease, integer? code
function Pool:write(element, fields, lease) end

---Write the pool to the disk, and wait for the disk. Nothing else in this process runs meanwhile.
---@return true? done, sxe.error? why, integer? code
function Pool:sync() end

---An element has the fields of its pool, too; they are nil when the element is gone.
---@class sxe.Element
---@field index integer 0 to count - 1
---@field state string
---@field age number seconds since it came to its state or was touched
---@field [string] any

---Make a pool, or open one that is in a file. Call it where the script begins, because it reserves the memory. A pool
---in a file outlives all processes, and a wrong description raises an error; a file that cannot be used is nil,
---message, code. A pool has no close.
---@param options sxe.pool.opening
---@return sxe.Pool? pool, sxe.error? why, integer? code
function pool.open(options) end

return pool
