---@meta sxe.task
-- SPDX-License-Identifier: MIT

---Functions that may wait while others run.
---@class sxe.task
---@field stats sxe.Counters started, failed, cancelled, refused
local task = {}

---@class sxe.Task
---@field status "ready"|"running"|"waiting"|"done"|"failed"|"cancelled"
---@field name string
---@field trace string where it waits
local Task = {}

---Wait for its end: what it returned, or its error is raised; nil, "timeout" or "cancelled".
---@param timeout? sxe.seconds
---@return any ...
function Task:join(timeout) end

---The call that it waits in, or its next one, returns nil, "cancelled"; the one after that raises.
function Task:cancel() end

---fn() runs as a task when this one is cancelled, before it.
---@param fn fun()
---@return sxe.Task
function Task:on_cancel(fn) end

---Of task.lock() and task.semaphore(n); it releases itself as a <close> variable.
---@class sxe.Lock
local Lock = {}

---@param timeout? sxe.seconds
---@return sxe.Lock? lock, sxe.error? why
function Lock:acquire(timeout) end

function Lock:release() end

---@class sxe.Event
local Event = {}

---@param timeout? sxe.seconds
---@return true? ok, sxe.error? why
function Event:wait(timeout) end

function Event:set() end

function Event:clear() end

---@return boolean
function Event:is_set() end

---@class sxe.Queue
---@operator len: integer
local Queue = {}

---@param item any other than nil
---@param timeout? sxe.seconds
---@return true? ok, sxe.error? why
function Queue:put(item, timeout) end

---@param timeout? sxe.seconds
---@return any item, sxe.error? why
function Queue:get(timeout) end

---for item in queue:each() do
---@return fun(queue: sxe.Queue): any
---@return sxe.Queue
function Queue:each() end

---What is in it is still given out.
function Queue:close() end

---Start fn(...) as a task; nil, message when none is free.
---@param fn fun(...)
---@param ... any
---@return sxe.Task? task, sxe.error? why
function task.start(fn, ...) end

---@param seconds sxe.seconds 0: only let other tasks run
---@return true? ok, sxe.error? why
function task.sleep(seconds) end

---The task that runs.
---@return sxe.Task
function task.self() end

---@return sxe.Task[]
function task.all() end

---fn(item, i) for each, at most limit at a time; the results, their number in n. Raises the first error.
---@overload fun(functions: (fun(): any)[], limit?: integer): table?, sxe.error?
---@param list any[]
---@param fn fun(item: any, i: integer): any
---@param limit? integer
---@return table? results, sxe.error? why
function task.parallel(list, fn, limit) end

---What fn(...) returns; nil, "timeout" when the time is over, and fn is cancelled.
---@param seconds sxe.seconds
---@param fn fun(...): ...
---@param ... any
---@return any ...
function task.deadline(seconds, fn, ...) end

---@return sxe.Lock
function task.lock() end

---@param n integer
---@return sxe.Lock
function task.semaphore(n) end

---@return sxe.Event
function task.event() end

---@param capacity? integer
---@return sxe.Queue
function task.queue(capacity) end

return task
