---@meta sxe.worker
-- SPDX-License-Identifier: MIT

---Threads with a state of Lua of their own; see docs/workers.md.
---@class sxe.worker
---@field parent? sxe.WorkerParent in a worker: its owner
local worker = {}

---@class sxe.worker.options
---@field code? string|fun(): any either code or file
---@field file? string
---@field name? string 1 to 31 bytes
---@field memory? integer bytes; 64 MiB
---@field cpu_ms? integer of computing in one call without a wait; no limit
---@field calls? integer that are served at a time; 64

---@class sxe.Worker
---@field name string
---@field status "running"|"ended"
---@field calls integer that wait for a reply
---@field load integer that its thread has not finished, also those that no task waits for any more
local Worker = {}

---Call a function of the worker, or a copy of a function, and return copies of its results, or nil and the error. The
---task waits; if it is cancelled, so is the call in the worker.
---@param fn string|function
---@param ... any
---@return any ...
function Worker:call(fn, ...) end

---Put a message into the worker's queue. The call does not wait; the value is copied. A worker that has ended, and more
---than 256 MiB of messages, are nil and a message; a value that cannot be copied raises an error.
---@param value any other than nil
---@return true? ok, sxe.error? why
function Worker:send(value) end

---Wait for the next message of the worker. Returns nil, "timeout" after the timeout.
---@param timeout? sxe.seconds
---@return any value, sxe.error? why
function Worker:receive(timeout) end

---End it, and wait until its thread has ended.
---@param timeout? sxe.seconds
---@return true? ok, sxe.error? why
function Worker:stop(timeout) end

---The owner of a worker, in the worker.
---@class sxe.WorkerParent
local WorkerParent = {}

---Put a message into the owner's queue, from the worker. The call does not wait; the value is copied.
---@param value any other than nil
---@return true? ok, sxe.error? why
function WorkerParent:send(value) end

---Wait for the next message of the owner, in the worker. Returns nil, "timeout" after the timeout.
---@param timeout? sxe.seconds
---@return any value, sxe.error? why
function WorkerParent:receive(timeout) end

---Start a thread with a Lua state of its own, which runs the code once. The code returns the function, or the table of
---functions, that Worker:call may call. At most 256 workers run in a process; the worker ends by Worker:stop, with its
---<close> variable, or when it is collected.
---@param options sxe.worker.options
---@return sxe.Worker? worker, sxe.error? why, sxe.code? code
function worker.new(options) end

---Return how many CPUs this process may use.
---@return integer
function worker.cores() end

---Call a copy of a function in a shared worker, and return copies of its results, or nil and the error. The task waits.
---C functions and modules among its upvalues raise an error: require them inside.
---@param fn function
---@param ... any
---@return any ...
function worker.run(fn, ...) end

---Call fn(item, i) for each item in the shared workers, and return the first results, their number in n. After the
---first error it returns nil, the error and the item's number.
---@param items any[]
---@param fn fun(item: any, i: integer): any
---@param options? { workers?: integer }
---@return table? results, sxe.error? why, integer? item
function worker.map(items, fn, options) end

return worker
