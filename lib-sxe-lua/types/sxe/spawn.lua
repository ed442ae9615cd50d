---@meta sxe.spawn
-- SPDX-License-Identifier: MIT

---@class sxe.spawn.command
---@field [integer] string|number the command and its arguments
---@field stdin? "pipe"|"null"|"inherit"
---@field stdout? "pipe"|"null"|"inherit"
---@field stderr? "pipe"|"null"|"inherit"|"stdout"
---@field env? table<string, string> the whole environment
---@field cwd? string

---@class sxe.Child
---@field pid integer
---@field running boolean
---@field stderr? sxe.Connection
local Child = {}

---Read from the child's standard output, as Connection:read does. The task waits. At the end of the output it returns
---nil, "closed".
---@param what? integer|"l"|"L"|"a"
---@param timeout? sxe.seconds
---@return string? data, sxe.error? why, sxe.code? code, string? partial
function Child:read(what, timeout) end

---Iterate over the lines of the child's standard output, without their ends.
---@return fun(child: sxe.Child): string?
---@return sxe.Child
function Child:lines() end

---Write to the child's standard input, which must be "pipe". The task waits while the child does not read.
---@param ... string|number
---@return true? ok, sxe.error? why, sxe.code? code
function Child:write(...) end

---End the child's standard input, after the bytes that were written.
---@return true? ok, sxe.error? why, sxe.code? code
function Child:close() end

---Wait for the end of the child, and return the results of os.execute. Read its output first: a child whose output is
---not read does not end. After nil, "timeout" it still runs.
---@param timeout? sxe.seconds
---@return true? ok, string? how, integer? number
function Child:wait(timeout) end

---Send a signal to the child, by number or name. It never goes to another process.
---@param signal? string|integer "TERM"
---@return true? ok, sxe.error? why, sxe.code? code
function Child:kill(signal) end

---Run a program, without a shell, and return the child process. A program that is not there is nil, message, code. The
---child is killed at the end of its <close> variable, and when a task that waits for it is cancelled.
---@param command sxe.spawn.command
---@return sxe.Child? child, sxe.error? why, sxe.code? code
local function spawn(command) end

return spawn
