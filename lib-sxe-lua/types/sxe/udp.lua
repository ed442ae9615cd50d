---@meta sxe.udp
-- SPDX-License-Identifier: MIT

---Sockets for datagrams.
---@class sxe.udp
local udp = {}

---@class sxe.UdpSocket
---@field timeout? sxe.seconds of each call that names none
---@field local_addr? string
---@field local_port? integer
---@field peer_addr? string of the last datagram
---@field peer_port? integer
local UdpSocket = {}

---Wait for a datagram, and return its data, and the address and port of its sender. A datagram comes whole. Returns
---nil, "timeout" or "closed".
---@param timeout? sxe.seconds
---@return string? data, string ip_or_why, integer? port
function UdpSocket:recvfrom(timeout) end

---Send a datagram. A name is resolved to an address of the socket's own family. More bytes than a datagram can carry
---are nil, message, 90.
---@param data string
---@param host string
---@param port integer
---@param timeout? sxe.seconds
---@return true? ok, sxe.error? why, sxe.code? code
function UdpSocket:sendto(data, host, port, timeout) end

---Close the socket. Tasks that wait for a datagram get nil, "closed".
---@return true? ok, sxe.error? why
function UdpSocket:close() end

---Open a socket for datagrams. A port that another socket has is nil, message, code. The socket is also closed when it
---is collected as garbage, or by a <close> variable.
---@param ip string "" for every address
---@param port integer 0: one that is free
---@return sxe.UdpSocket? socket, sxe.error? why, sxe.code? code
function udp.open(ip, port) end

---Open a socket, and run fn(socket) as a task, at whose end the socket is closed. If the socket cannot be opened, the
---program does not start.
---@param ip string
---@param port integer
---@param fn fun(socket: sxe.UdpSocket)
function udp.serve(ip, port, fn) end

return udp
