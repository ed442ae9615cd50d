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

---Texts in parts, settings, and the sockets, timers and pools of 2010 and 2011. The globals below are fields of the
---module, too.
---@class sxe
---@field log_level integer|string what the log shows: 0 to 7, or a name
---@field read_arg "content"|"length" what a read callback of two parameters gets
local sxe = {}

---Split a text at each separator, for a loop. The separator is plain text of at least one byte; n separators make n + 1
---parts, which may be empty.
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

---Accept connections at the address with which the socket was made. Each connection is a socket of its own, with the
---same callbacks. A socket that is closed, or listens or is connected already, fails with a reason.
---@return true? ok, sxe.error? why, sxe.code? code
function Socket:listen() end

---Begin to connect to an address. The call does not wait: onconnect is called when the connection is there, and onclose
---if it fails later.
---@param ip string
---@param port integer
---@return true? ok, sxe.error? why, sxe.code? code
function Socket:connect(ip, port) end

---Send a text, a number or the bytes of a buffer. The call does not wait: the bytes are copied, and sent when the
---callback ends. After an error no byte was accepted; a closed socket is nil, "closed".
---@param text string|number|sxe.Buffer
---@return true? ok, sxe.error? why, sxe.code? code
function Socket:write(text) end

---Close the socket after its written bytes were sent. A socket that is closed already is nil, "closed".
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

---Return all bytes of the buffer as a string. They stay in the buffer; that of a closed socket is empty.
---@return string
function Buffer:text() end

---@class sxe.Timer2011: userdata
---@class sxe.Pool2011: userdata

---Plan this many sockets, and call fn() when the loop starts.
---@param number integer
---@param fn fun()
function sxe_register(number, fn) end

---Make a socket with callbacks, which then listens or connects. The sockets are planned with sxe_register; without a
---free one the result is nil and the reason. The callbacks are no tasks: a call that waits raises an error in them.
---@param ip string "" for every address
---@param port integer 0: one that is free
---@param connected? fun(s: sxe.Socket)
---@param read? fun(s: sxe.Socket, content?: string|integer): integer|boolean|nil
---@param closed? fun(s: sxe.Socket)
---@return sxe.Socket? socket, sxe.error? why, sxe.code? code
function sxe_new_tcp(ip, port, connected, read, closed) end

---Accept connections at the address with which the socket was made, as s:listen() does.
---@param s sxe.Socket
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_listen(s) end

---Begin to connect to an address, as s:connect() does. The call does not wait.
---@param s sxe.Socket
---@param ip string
---@param port integer
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_connect(s, ip, port) end

---Send a text, a number or the bytes of a buffer, as s:write() does. The call does not wait.
---@param s sxe.Socket
---@param text string|number|sxe.Buffer
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_write(s, text) end

---Close a socket after its written bytes were sent, as s:close() does.
---@param s sxe.Socket
---@return true? ok, sxe.error? why, sxe.code? code
function sxe_close(s) end

---Consume all that was received.
---@param s sxe.Socket
function sxe_buf_clear(s) end

---Return the number of a socket, which its lines in the log have. Later sockets get the numbers of closed ones.
---@param s sxe.Socket
---@return integer
function sxe_id(s) end

---Return the buffer of received bytes that were not consumed. It is no copy: it shows the bytes of the moment.
---@param s sxe.Socket
---@return sxe.Buffer
function sxe_buf(s) end

---Return the count of received bytes that were not consumed, 0 for a closed socket.
---@param s sxe.Socket
---@return integer
function sxe_buf_used(s) end

---Return the address of the peer, or nil for a closed socket.
---@param s sxe.Socket
---@return string?
function sxe_peer_addr(s) end

---Return the port of the peer, or nil for a closed socket.
---@param s sxe.Socket
---@return integer?
function sxe_peer_port(s) end

---Return the socket's own address, or nil for a closed socket.
---@param s sxe.Socket
---@return string?
function sxe_local_addr(s) end

---Return the socket's own port, or nil for a closed socket. After sxe_listen with port 0 it is the port that the system
---chose.
---@param s sxe.Socket
---@return integer?
function sxe_local_port(s) end

---Make a timer, which sxe_timer_start starts. It calls fn(timer) once after some seconds, then again at each interval
---if there is one. The function is no task, and an error in it is logged.
---@param fn fun(timer: sxe.Timer2011)
---@param after sxe.seconds
---@param every? sxe.seconds
---@return sxe.Timer2011
function sxe_timer_new(fn, after, every) end

---Start a timer. Before the loop runs, for instance outside of a function of sxe_register, this raises an error. A
---timer that runs is not collected as garbage.
---@param timer sxe.Timer2011
function sxe_timer_start(timer) end

---Stop a timer, so that no further call begins. sxe_timer_start starts it again.
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

---Send a signal, by its number, to the child process of a socket of sxe_spawn. This raises an error if the child does
---not run any more.
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

---Return the name of a pool.
---@param p sxe.Pool2011
---@return string
function sxe_pool_get_name(p) end

---Return the count of elements in a state.
---@param p sxe.Pool2011
---@param state integer
---@return integer
function sxe_pool_get_number_in_state(p, state) end

---Return the index of the element that came into a state first, or nil if the state has none.
---@param p sxe.Pool2011
---@param state integer
---@return integer? index
function sxe_pool_get_oldest_element_index(p, state) end

---Return the state of an element.
---@param p sxe.Pool2011
---@param i integer
---@return integer state
function sxe_pool_index_to_state(p, i) end

---Move an element from one state to another, where it is the youngest. This raises an error if the element is in
---another state than `from`.
---@param p sxe.Pool2011
---@param i integer
---@param from integer
---@param to integer
function sxe_pool_set_indexed_element_state(p, i, from, to) end

---Move the oldest element of one state to another, and return its index, or nil if the state has none.
---@param p sxe.Pool2011
---@param from integer
---@param to integer
---@return integer? index
function sxe_pool_set_oldest_element_state(p, from, to) end

---Make an element the youngest of its state.
---@param p sxe.Pool2011
---@param i integer
function sxe_pool_touch_indexed_element(p, i) end

---Return the table of an element, in which the script may keep values. It is the same table at each call, also after
---the element moved.
---@param p sxe.Pool2011
---@param i integer
---@return table element the script's own; index is there
function sxe_pool_get_indexed_element(p, i) end

---Check the timeouts of the pools that the program made in C. Pools of sxe_pool_new have no timeouts.
function sxe_pool_check_timeouts() end

---Log a text at level 1, fatal errors. The program continues.
---@param text any
function SXEL1(text) end

---Log a text at level 2, errors.
---@param text any
function SXEL2(text) end

---Log a text at level 3, warnings.
---@param text any
function SXEL3(text) end

---Log a text at level 4, information.
---@param text any
function SXEL4(text) end

---Log a text at level 5, debugging.
---@param text any
function SXEL5(text) end

---Log a text at level 6, traces.
---@param text any
function SXEL6(text) end

---Log a text at level 7, dumps. It is the last level that the log has.
---@param text any
function SXEL7(text) end

---Log a text at level 7, as SXEL7 does. The log has no level 8.
---@param text any
function SXEL8(text) end

---Log a text at level 7, as SXEL7 does. The log has no level 9.
---@param text any
function SXEL9(text) end

return sxe
