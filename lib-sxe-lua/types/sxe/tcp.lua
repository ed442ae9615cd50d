---@meta sxe.tcp
-- SPDX-License-Identifier: MIT

---TCP servers and clients, and clients of unix sockets. Each connection may speak TLS to its server.
---@class sxe.tcp
local tcp = {}

---@class sxe.tcp.options: sxe.options
---@field from? string the address to connect from
---@field tls? boolean|sxe.tls.options true: verify the host against the system's authorities
---@field public_only? boolean refuse addresses that are not of the internet

---@class sxe.tls.options
---@field ca? string file in PEM of the authorities to trust, in place of the system's
---@field cert? string file in PEM of a certificate of our own, for servers that ask for one
---@field key? string and of its key
---@field name? string that the server is asked for and must have; by default the host
---@field alpn? string protocols, with commas
---@field insecure? boolean any certificate is good

---@class sxe.tcp.serving
---@field handler fun(conn: sxe.Connection)
---@field connections? integer at once, 1000
---@field timeout? sxe.seconds of each connection

---@class sxe.Connection
---@field timeout? sxe.seconds of each read and write that names none
---@field id integer as in the log
---@field error? string why it broke
---@field peer_addr? string
---@field peer_port? integer
---@field local_addr? string
---@field local_port? integer
local Connection = {}

---Read the next bytes, so many bytes, a line, or all bytes until the end. The task waits. After a read of "a", or of
---more than 16 KiB, that fails, the fourth result is what had come.
---@param what? integer|"l"|"L"|"a"
---@param timeout? sxe.seconds
---@return string? data, sxe.error? why, sxe.code? code, string? partial
function Connection:read(what, timeout) end

---Iterate over the bytes of the connection as they arrive, until its end.
---@return fun(conn: sxe.Connection): string?
---@return sxe.Connection
function Connection:chunks() end

---Iterate over the lines of the connection, without their ends. A last line without its end is left to conn:read().
---@return fun(conn: sxe.Connection): string?
---@return sxe.Connection
function Connection:lines() end

---Send texts and numbers. The task waits while much is unsent, so that memory is bounded. After a timeout the
---connection is reset, because a part may have been sent.
---@param ... string|number
---@return true? ok, sxe.error? why, sxe.code? code
function Connection:write(...) end

---End the output, after what was written. Reading continues.
---@return true? ok, sxe.error? why, sxe.code? code
function Connection:shutdown() end

---Close the connection, after what was written was sent.
---@return true? ok, sxe.error? why, sxe.code? code
function Connection:close() end

---@class sxe.TcpServer
---@field addr? string
---@field port? integer
---@field accepted? integer so far
local TcpServer = {}

---Stop accepting connections. Connections that were accepted continue.
---@return true? ok, sxe.error? why
function TcpServer:close() end

---Listen, and run fn(conn) as a task for each connection, which is closed at its end. Before the loop runs it plans the
---server, and an address that is in use then ends the program; later it is nil, message, code.
---@param ip string "" for every address
---@param port integer 0: one that is free
---@param fn fun(conn: sxe.Connection)|sxe.tcp.serving
---@return sxe.TcpServer? server, sxe.error? why, sxe.code? code
function tcp.serve(ip, port, fn) end

---Connect to a host, or to a unix socket ("unix:/path"), and return a connection. The task waits while a thread
---resolves the name, and while its addresses are tried. The timeout is then that of each read and write.
---@param host string
---@param port integer
---@param options? sxe.tcp.options
---@return sxe.Connection? conn, sxe.error? why, sxe.code? code
function tcp.connect(host, port, options) end

return tcp
