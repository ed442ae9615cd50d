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

---The results of a function that the worker's code returned, or of a copy of a function; nil, error.
---@param fn string|function
---@param ... any
---@return any ...
function Worker:call(fn, ...) end

---@param value any other than nil
---@return true? ok, sxe.error? why
function Worker:send(value) end

---The next message of the worker.
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

---@param value any other than nil
---@return true? ok, sxe.error? why
function WorkerParent:send(value) end

---@param timeout? sxe.seconds
---@return any value, sxe.error? why
function WorkerParent:receive(timeout) end

---@param options sxe.worker.options
---@return sxe.Worker? worker, sxe.error? why, sxe.code? code
function worker.new(options) end

---How many CPUs this process may use.
---@return integer
function worker.cores() end

---What a copy of fn returns in a shared worker; nil, error.
---@param fn function
---@param ... any
---@return any ...
function worker.run(fn, ...) end

---fn(item, i) for each item in the shared workers: the first results, their number in n; nil, error, the item's number.
---@param items any[]
---@param fn fun(item: any, i: integer): any
---@param options? { workers?: integer }
---@return table? results, sxe.error? why, integer? item
function worker.map(items, fn, options) end

return worker
