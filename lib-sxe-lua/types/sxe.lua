---@meta sxe
-- SPDX-License-Identifier: MIT
-- For editors: what require "sxe" is, and the globals of 2010 and 2011. docs/lua-handlers.md has examples.

---The reason that a call returns after nil if it fails: "timeout", "cancelled", "closed", or the system's message.
---@alias sxe.error string

---The errno of the system, if the reason has one.
---@alias sxe.code integer

---@alias sxe.seconds number

---@class sxe.options
---@field timeout? sxe.seconds

---The module has the globals below as its fields, too.
---@class sxe
---@field log_level integer|string what the log shows: 0 to 7, or a name
---@field read_arg "content"|"length" what a read callback of two parameters gets
local sxe = {}

---for part in sxe.split(text, separator) do: the separator is plain text.
---@param text string
---@param separator string
---@return fun(): string?
function sxe.split(text, separator) end

---A socket of 2010, with callbacks. Other fields are the script's own.
---@class sxe.Socket
---@field id integer as in the log
---@field buf sxe.Buffer what was received and not consumed
---@field buf_used integer its bytes
---@field peer_addr? string
---@field peer_port? integer
---@field local_addr? string
---@field local_port? integer
---@field onconnect? fun(s: sxe.Socket)
---@field onread? fun(s: sxe.Socket, content?: string|integer): integer|boolean|nil
---@field onclose? fun(s: sxe.Socket)
---@field [string] any
local Socket = {}

---@return true? ok, sxe.error? why, sxe.code? code
function Socket:listen() end

---@param ip string
---@param port integer
---@return true? ok, sxe.error? why, sxe.code? code
function Socket:connect(ip, port) end

---@param text string|number|sxe.Buffer
---@return true? ok, sxe.error? why, sxe.code? code
function Socket:write(text) end

---@return true? ok, sxe.error? why, sxe.code? code
function Socket:close() end

---Consume all that was received.
function Socket:buf_clear() end

---Send a signal to the child of a socket of sxe_spawn.
---@param signal integer
---@return true? ok, sxe.error? why, sxe.code? code
function Socket:kill(signal) end

---@class sxe.Buffer
---@operator len: integer
local Buffer = {}

---Find a plain text, as string.find does: the places of its first and last byte.
---@param text string
---@param from? integer
---@return integer? first, integer? last
function Buffer:find(text, from) end

---Find a plain text as Buffer:find does, but in any case.
---@param text string
---@param from? integer
---@return integer? first, integer? last
function Buffer:ifind(text, from) end

---@return string
function Buffer:text() end

---@class sxe.Timer2011: userdata
---@class sxe.Pool2011: userdata

---Plan this many sockets, and call fn() when the loop starts.
---@param number integer
---@param fn fun()
function sxe_register(number, fn) end

---@param ip string "" for every address
---@param port integer 0: one that is free
---@param connected? fun(s: sxe.Socket)
---@param read? fun(s: sxe.Socket, content?: string|integer): integer|boolean|nil
---@param closed? fun(s: sxe.Socket)
---@return sxe.Socket? socket, sxe.error? why, sxe.code? code
function sxe_new_tcp(ip, port, connected, read, closed) end

---@param s sxe.Socket
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_listen(s) end

---@param s sxe.Socket
---@param ip string
---@param port integer
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_connect(s, ip, port) end

---@param s sxe.Socket
---@param text string|number|sxe.Buffer
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_write(s, text) end

---@param s sxe.Socket
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_close(s) end

---Consume all that was received.
---@param s sxe.Socket
function sxe_buf_clear(s) end

---@param s sxe.Socket
---@return integer
function sxe_id(s) end

---@param s sxe.Socket
---@return sxe.Buffer
function sxe_buf(s) end

---@param s sxe.Socket
---@return integer
function sxe_buf_used(s) end

---@param s sxe.Socket
---@return string?
function sxe_peer_addr(s) end

---@param s sxe.Socket
---@return integer?
function sxe_peer_port(s) end

---@param s sxe.Socket
---@return string?
function sxe_local_addr(s) end

---@param s sxe.Socket
---@return integer?
function sxe_local_port(s) end

---@param fn fun(timer: sxe.Timer2011)
---@param after sxe.seconds
---@param every? sxe.seconds
---@return sxe.Timer2011
function sxe_timer_new(fn, after, every) end

---@param timer sxe.Timer2011
function sxe_timer_start(timer) end

---@param timer sxe.Timer2011
function sxe_timer_stop(timer) end

---Run a program whose standard input and output are a socket.
---@param command string
---@param a? string
---@param b? string
---@param connected? fun(s: sxe.Socket)
---@param read? fun(s: sxe.Socket, content?: string|integer): integer|boolean|nil
---@param closed? fun(s: sxe.Socket)
---@return sxe.Socket? socket, sxe.error? why, sxe.code? code
function sxe_spawn(command, a, b, connected, read, closed) end

---@param s sxe.Socket
---@param signal integer
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_spawn_kill(s, signal) end

---Make a pool of `number` elements, each in one of `states` states; both are numbers from 0.
---@param name string
---@param number integer
---@param states integer
---@return sxe.Pool2011
function sxe_pool_new(name, number, states) end

---@param p sxe.Pool2011
---@return string
function sxe_pool_get_name(p) end

---@param p sxe.Pool2011
---@param state integer
---@return integer
function sxe_pool_get_number_in_state(p, state) end

---@param p sxe.Pool2011
---@param state integer
---@return integer? index
function sxe_pool_get_oldest_element_index(p, state) end

---@param p sxe.Pool2011
---@param i integer
---@return integer state
function sxe_pool_index_to_state(p, i) end

---@param p sxe.Pool2011
---@param i integer
---@param from integer
---@param to integer
function sxe_pool_set_indexed_element_state(p, i, from, to) end

---@param p sxe.Pool2011
---@param from integer
---@param to integer
---@return integer? index
function sxe_pool_set_oldest_element_state(p, from, to) end

---@param p sxe.Pool2011
---@param i integer
function sxe_pool_touch_indexed_element(p, i) end

---@param p sxe.Pool2011
---@param i integer
---@return table element the script's own; index is there
function sxe_pool_get_indexed_element(p, i) end

function sxe_pool_check_timeouts() end

---@param text any
function SXEL1(text) end

---@param text any
function SXEL2(text) end

---@param text any
function SXEL3(text) end

---@param text any
function SXEL4(text) end

---@param text any
function SXEL5(text) end

---@param text any
function SXEL6(text) end

---@param text any
function SXEL7(text) end

---@param text any
function SXEL8(text) end

---@param text any
function SXEL9(text) end

return sxe
