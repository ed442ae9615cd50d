-- SPDX-License-Identifier: MIT
--
-- A new directory of files, and a sxe-httpd that serves it. The directory is removed when the server stops.

local http = require "http"
local httpd = require "httpd"
local site = {}
site.__index = setmetatable(site, {__index = httpd})

site.HELLO = "Hello, World!\n"
site.SECRET = "nobody may read this\n"

-- 1,000 bytes: each group of four holds its own number, so that a test sees where a part comes from.
site.BIG = ""
for i = 0, 249 do
    site.BIG = site.BIG .. ("%03d|"):format(i)
end

-- The modification time of every file, in the three formats of RFC 9110, 5.6.7, and times an hour before and after.
site.MODIFIED = "Thu, 02 Jan 2020 03:04:05 GMT"
site.MODIFIED_850 = "Thursday, 02-Jan-20 03:04:05 GMT"
site.MODIFIED_ASCTIME = "Thu Jan  2 03:04:05 2020"
site.BEFORE = "Thu, 02 Jan 2020 02:04:05 GMT"
site.AFTER = "Thu, 02 Jan 2020 04:04:05 GMT"

local TOUCHED = "2020-01-02 03:04:05 UTC"

local function quoted(word)
    return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function run(...)
    local words = {...}
    for i, word in ipairs(words) do
        words[i] = quoted(word)
    end
    assert(os.execute(table.concat(words, " ")), table.concat(words, " "))
end

-- Write a file below the root, and make its directories. `when`: the modification time; nil: TOUCHED.
function site:write(name, content, when)
    local path = self.root .. "/" .. name
    run("mkdir", "-p", path:match("^(.*)/"))
    local file <close> = assert(io.open(path, "w"))
    file:write(content)
    file:close()
    run("touch", "-d", when or TOUCHED, path)
end

function site:mkdir(name)
    run("mkdir", "-p", self.root .. "/" .. name)
end

function site:link(target, name)
    run("ln", "-s", target, self.root .. "/" .. name)
end

function site:mkfifo(name)
    run("mkfifo", self.root .. "/" .. name)
end

-- Replace a file by a new one in one step (rename).
function site:replace(name, content, when)
    self:write(".new", content, when)
    run("mv", self.root .. "/.new", self.root .. "/" .. name)
end

local function fill(tree)
    tree:write("hello.txt", site.HELLO)
    tree:write("empty.txt", "")
    tree:write("big.bin", site.BIG)
    tree:write("index.html", "<p>home\n")
    tree:write("page.html", "<p>page\n")
    tree:write("style.css", "p {}\n")
    tree:write("data.json", "{}\n")
    tree:write("image.png", "\137PNG\r\n\26\n")
    tree:write("image.svg", "<svg/>\n")
    tree:write("noextension", "?\n")
    tree:write("sub/index.html", "<p>sub\n")
    tree:write("sub/other.html", "<p>other\n")
    tree:write("bare/file.txt", "bare\n")
    tree:write(".hidden", site.SECRET)
    tree:write(".dir/file.txt", site.SECRET)
    tree:write(".well-known/file.txt", "well known\n")
    tree:write("packed.js", ("plain();\n"):rep(50))
    tree:write("packed.js.br", "as br")
    tree:write("packed.js.zst", "as zstd")
    tree:write("packed.js.gz", "as gzip")
    tree:write("zipped.css", ("p {}\n"):rep(50))
    tree:write("zipped.css.gz", "as gzip")
    tree:write("stale.js", ("new();\n"):rep(50))
    tree:write("stale.js.gz", "as old gzip", "2019-01-02 03:04:05 UTC")
end

-- Start sxe-httpd with these options and a new root.
function site.start(...)
    local root = os.tmpname()
    os.remove(root)
    local tree = setmetatable({root = root .. "/root", parent = root}, site)
    tree:mkdir("")
    tree:write("../secret.txt", site.SECRET)
    fill(tree)
    local server = httpd.spawn{wire.program("sxe-httpd"), "-p", "0", "-r", tree.root, ...}
    for name, value in pairs(server) do
        tree[name] = value
    end
    return tree
end

function site:__close(failure)
    run("rm", "-r", self.parent)
    if failure == nil then
        self:stop()
    end
end

-- GET with these fields, on a new connection.
function site:get(target, ...)
    return http.ask(self, http.request("GET " .. target, ...))
end

-- Like get, but send one more request on the same connection, which must be answered, too.
function site:get_and_go_on(target, ...)
    local sock <close> = self:connect()
    sock:send(http.request("GET " .. target, ...)
              .. http.request("GET /hello.txt", "Connection: close"))
    local reply = sock:read_reply()
    equal(sock:read_reply().body, site.HELLO, "the next reply")
    equal(sock:recv_all(), "", "said after the last reply")
    return reply
end

return site
