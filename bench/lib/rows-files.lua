-- SPDX-License-Identifier: MIT
-- Rows about files that are served from a warm page cache, by length.

local VOID = "a reply with another status or length; a connection refused, reset or closed; "
             .. "0.08 of a CPU taken by others"

-- All lines differ, so that bytes from a wrong place of the file are noticed.
local function numbered(length)
    local lines = {}
    for i = 1, length // 10 do
        lines[i] = ("%09d\n"):format(i)
    end
    return table.concat(lines)
end

-- The client has the kernel discard long replies instead of copying them.
local function row(name, connections, content, who, more)
    local result = {
        name = "file-" .. name, service = "file", peers = who, unit = "replies/s",
        title = ("A file of %d bytes, %d keep-alive connections"):format(#content, connections),
        work = "the same file again and again, from the page cache; no access log",
        command = ("limit-client -c %d -b 64 -d 1 -u /%s -p PORT"):format(connections, name),
        reference = "nginx", checks = "length of each reply, status and all bytes once a sample",
        void = VOID, files = {[name] = content}, budget = 35,
        load = {connections = connections, target = "/" .. name, body = content,
                client = "limit-client"},
        columns = {{"megabytes", "MB/s", 0}, {"server_us", "server µs/request", 2},
                   {"p50", "p50 µs", 0}, {"p99", "p99 µs", 0}}}
    for field, value in pairs(more or {}) do
        result[field] = value
    end
    return result
end

-- Targets compare with nginx at its best; only the target for 13 bytes compares with nginx as it is
-- installed, which sends them in a second segment and reaches 0.29 to 0.45 of the limit program's
-- rate.
local LONG = {"sxe-httpd", "nginx", "nginx-defaults", "nginx-debian", "h2o", "lighttpd", "go"}
local SHORT = {"limit", "sxe-httpd", "nginx", "nginx-defaults", "nginx-debian", "h2o", "lighttpd",
               "go", "node"}

return {
    row("13", 64, "Hello, World!", SHORT,
        {target = {peer = "nginx-defaults", ratio = 2, of = "issue 3"}}),
    row("100k", 64, numbered(100000), LONG,
        {target = {peer = "nginx", ratio = 1.2, of = "issue 3"}}),
    row("10m", 16, numbered(10000000), LONG,
        {seconds = 0.5, target = {peer = "nginx", ratio = 1, of = "issue 3"}}),
}
