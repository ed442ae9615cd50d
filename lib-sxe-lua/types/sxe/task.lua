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

---Ask the task to end. The call that it waits in, or its next one, returns nil, "cancelled"; the one after that raises
---an error. A task that computes is interrupted.
function Task:cancel() end

---Set a function, which runs as a task when this one is cancelled, before it continues.
---@param fn fun()
---@return sxe.Task
function Task:on_cancel(fn) end

---Of task.lock() and task.semaphore(n); it releases itself as a <close> variable.
---@class sxe.Lock
local Lock = {}

---Wait until the lock, or a permit of the semaphore, is free, and take it. Returns the lock, which a <close> variable
---releases, or nil, "timeout" or "cancelled". A task that acquires a lock that it holds raises an error.
---@param timeout? sxe.seconds
---@return sxe.Lock? lock, sxe.error? why
function Lock:acquire(timeout) end

---Give the lock, or a permit, to the task that has waited longest. Only the task that holds a lock may release it;
---others raise an error. A lock is released when its task ends.
function Lock:release() end

---@class sxe.Event
local Event = {}

---Wait until the event is set. Returns true, at once if it is set already, or nil, "timeout" or "cancelled".
---@param timeout? sxe.seconds
---@return true? ok, sxe.error? why
function Event:wait(timeout) end

---Set the event, so that all tasks that wait for it continue. It stays set until Event:clear.
function Event:set() end

---Clear the event, so that tasks wait for it again.
function Event:clear() end

---Return whether the event is set.
---@return boolean
function Event:is_set() end

---@class sxe.Queue
---@operator len: integer
local Queue = {}

---Add an item, and wait for room while the queue is full. Returns true, or nil, "timeout", "cancelled" or "closed".
---@param item any other than nil
---@param timeout? sxe.seconds
---@return true? ok, sxe.error? why
function Queue:put(item, timeout) end

---Take the oldest item, and wait for one while the queue is empty. Returns nil, "closed" when the queue is closed and
---its last item was taken; also nil, "timeout" or "cancelled".
---@param timeout? sxe.seconds
---@return any item, sxe.error? why
function Queue:get(timeout) end

---Iterate over the items of the queue, until it is closed and empty. The loop waits for each item.
---@return fun(queue: sxe.Queue): any
---@return sxe.Queue
function Queue:each() end

---Close the queue. Items that are in it can still be taken; then get returns nil, "closed", and so does put at once.
function Queue:close() end

---Start fn(...) as a task; nil, message when none is free.
---@param fn fun(...)
---@param ... any
---@return sxe.Task? task, sxe.error? why
function task.start(fn, ...) end

---Wait for some seconds. Returns true, or nil, "cancelled".
---@param seconds sxe.seconds 0: only let other tasks run
---@return true? ok, sxe.error? why
function task.sleep(seconds) end

---Return the task that runs.
---@return sxe.Task
function task.self() end

---Return a list of all tasks that have not ended.
---@return sxe.Task[]
function task.all() end

---Call fn(item, i) for each item as a task, at most `limit` at a time, and return the results, their number in n. The
---first error cancels the others, and is raised.
---@overload fun(functions: (fun(): any)[], limit?: integer): table?, sxe.error?
---@param list any[]
---@param fn fun(item: any, i: integer): any
---@param limit? integer
---@return table? results, sxe.error? why
function task.parallel(list, fn, limit) end

---Call a function as a task, and return its results. When the time is over it returns nil, "timeout" at once, and the
---function is cancelled.
---@param seconds sxe.seconds
---@param fn fun(...): ...
---@param ... any
---@return any ...
function task.deadline(seconds, fn, ...) end

---Make a lock, which one task at a time can hold.
---@return sxe.Lock
function task.lock() end

---Make a semaphore with n permits, which up to n tasks can hold. A permit belongs to no task, so it is not released at
---the end of one.
---@param n integer
---@return sxe.Lock
function task.semaphore(n) end

---Make an event, for which tasks wait until it is set. It is not set at first.
---@return sxe.Event
function task.event() end

---Make a queue of items between tasks. With a capacity, tasks that put wait while it is full; without one it grows.
---@param capacity? integer
---@return sxe.Queue
function task.queue(capacity) end

return task
