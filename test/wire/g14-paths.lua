-- SPDX-License-Identifier: MIT
-- How a path is mapped to a file: RFC 3986 sections 2 to 6, RFC 9110 section 17.3. No path, however it is written,
-- reaches a file outside the root.

local http = require "http"
local site = require "site"
local server <close> = site.start()
local open <close> = site.start("--dot-files")

server:write("with space.txt", "space\n")
server:write("caf\xc3\xa9.txt", "caf\xc3\xa9\n")
server:write("100%.txt", "percent\n")
server:write("a+b.txt", "plus\n")
server:write("a;b,c=d.txt", "marks\n")
server:write("question?.txt", "question\n")
server:write("UPPER.txt", "upper\n")
server:write("...", "three dots\n")
server:write("a..b.txt", "dots\n")
server:link("hello.txt", "link.txt")
server:link("sub", "linked")
server:link("../secret.txt", "out.txt")
server:link(server.parent .. "/secret.txt", "absolute.txt")
server:link("..", "up")
server:link("/", "slash")
server:link("loop", "loop")
server:link("nowhere", "dangling")
server:mkfifo("fifo")

local found = {
    {"RFC 3986 3.3", "a file", "/hello.txt", site.HELLO},
    {"RFC 3986 3.3", "a file in a directory", "/sub/other.html", "<p>other\n"},
    {"RFC 3986 3.4", "a query is no part of the name", "/hello.txt?a=b", site.HELLO},
    {"RFC 3986 3.4", "an empty query", "/hello.txt?", site.HELLO},
    {"RFC 3986 3.4", "slashes and dots in a query", "/hello.txt?/../../x", site.HELLO},
    {"RFC 3986 3.4", "an escaped NUL in a query", "/hello.txt?%00", site.HELLO},
    {"RFC 9112 3.2.2", "absolute form", "http://a/hello.txt", site.HELLO},
    {"RFC 9112 3.2.2", "absolute form with a query", "http://a:80/hello.txt?b", site.HELLO},
    {"RFC 3986 2.1", "an escaped letter", "/%68ello.txt", site.HELLO},
    {"RFC 3986 2.1", "an escape in capitals and small letters", "/hell%6F.t%78t", site.HELLO},
    {"RFC 3986 2.1", "every letter escaped", "/%68%65%6c%6c%6f%2e%74%78%74", site.HELLO},
    {"RFC 3986 2.1", "an escaped blank", "/with%20space.txt", "space\n"},
    {"RFC 3986 2.1", "escaped UTF-8", "/caf%C3%A9.txt", "caf\xc3\xa9\n"},
    {"RFC 3986 2.1", "an escaped percent sign", "/100%25.txt", "percent\n"},
    {"RFC 3986 2.1", "an escaped question mark", "/question%3F.txt", "question\n"},
    {"RFC 3986 3.3", "a plus is a plus", "/a+b.txt", "plus\n"},
    {"RFC 3986 2.1", "an escaped plus", "/a%2Bb.txt", "plus\n"},
    {"RFC 3986 3.3", "other marks", "/a;b,c=d.txt", "marks\n"},
    {"RFC 3986 6.2.2.1", "names in capitals are other names", "/UPPER.txt", "upper\n"},
    {"RFC 3986 5.2.4", "a dot segment", "/./hello.txt", site.HELLO},
    {"RFC 3986 5.2.4", "many dot segments", "/./././hello.txt", site.HELLO},
    {"RFC 3986 5.2.4", "into a directory and back", "/sub/../hello.txt", site.HELLO},
    {"RFC 3986 5.2.4", "into nowhere and back", "/nowhere/../hello.txt", site.HELLO},
    {"RFC 3986 5.2.4", "an escaped dot segment", "/sub/%2e%2E/hello.txt", site.HELLO},
    {"RFC 3986 5.2.4", "back to the root", "/sub/nowhere/../../hello.txt", site.HELLO},
    {"RFC 3986 3.3", "two dots in a name", "/a..b.txt", "dots\n"},
    {"RFC 8615 3", "what is well known", "/.well-known/file.txt", "well known\n"},
    {"RFC 9110 17.3", "a link that stays in the root", "/link.txt", site.HELLO},
    {"RFC 9110 17.3", "a link to a directory that stays in the root", "/linked/other.html",
     "<p>other\n"},
}
for _, case in ipairs(found) do
    local section, name, target, body = table.unpack(case)
    test(("%s: %s: %s"):format(section, name, target), function()
        local reply = server:get_and_go_on(target)
        equal(reply.status, 200)
        equal(reply.body, body)
    end)
end

-- Paths that get 404, because there is no such file, or 400, because they cannot be a path.
local missing = {
    {"RFC 9110 15.5.5", "nothing", 404, "/missing"},
    {"RFC 9110 15.5.5", "nothing in a directory", 404, "/sub/missing"},
    {"RFC 9110 15.5.5", "nothing in nothing", 404, "/missing/missing"},
    {"RFC 9110 15.5.5", "a file is no directory", 404, "/hello.txt/"},
    {"RFC 9110 15.5.5", "nothing is in a file", 404, "/hello.txt/missing"},
    {"RFC 9110 15.5.5", "a name that begins like another", 404, "/hello"},
    {"RFC 9110 15.5.5", "a name that goes on like another", 404, "/hello.txtx"},
    {"RFC 3986 6.2.2.1", "a name in other letters", 404, "/HELLO.TXT"},
    {"RFC 3986 2.1", "a blank after a name", 404, "/hello.txt%20"},
    {"RFC 3986 2.1", "a dot after a name", 404, "/hello.txt."},
    {"RFC 3986 2.4", "escaped twice", 404, "/%2568ello.txt"},
    {"RFC 3986 3.3", "a name of 256 bytes", 404, "/" .. ("x"):rep(256)},
    {"RFC 3986 3.3", "a name of 5,000 bytes", {404, 414}, "/" .. ("x"):rep(5000)},
    {"RFC 3986 3.3", "a path of 3,000 directories", {404, 414}, ("/x"):rep(3000)},
    {"RFC 9110 17.3", "a dot file", 404, "/.hidden"},
    {"RFC 9110 17.3", "a dot file, escaped", 404, "/%2ehidden"},
    {"RFC 9110 17.3", "a file in a dot directory", 404, "/.dir/file.txt"},
    {"RFC 9110 17.3", "a dot file after a dot segment", 404, "/sub/../.hidden"},
    {"RFC 9110 17.3", "a dot file in a well-known directory's name", 404, "/.well-knownx"},
    {"RFC 9110 17.3", "a dot file that is not there", 404, "/.missing"},
    {"RFC 9110 17.3", "a link out of the root", 404, "/out.txt"},
    {"RFC 9110 17.3", "a link with an absolute path", 404, "/absolute.txt"},
    {"RFC 9110 17.3", "a link to the directory above", 404, "/up/secret.txt"},
    {"RFC 9110 17.3", "a link to the directory above and back", 404, "/up/root/hello.txt"},
    {"RFC 9110 17.3", "a link to all files of the system", 404, "/slash/etc/passwd"},
    {"RFC 9110 17.3", "a link to itself", 404, "/loop"},
    {"RFC 9110 17.3", "a link to nothing", 404, "/dangling"},
    {"RFC 9110 17.3", "a pipe", 404, "/fifo"},
    {"RFC 3986 5.4.2", "above the root", 400, "/../hello.txt"},
    {"RFC 3986 5.4.2", "above the root and back", 400, "/../root/hello.txt"},
    {"RFC 3986 5.4.2", "above the root, from a directory", 400, "/sub/../../hello.txt"},
    {"RFC 3986 5.4.2", "above the root, escaped", 400, "/%2e%2E/hello.txt"},
    {"RFC 3986 5.4.2", "above the root, at the end", 400, "/sub/../.."},
    {"RFC 3986 5.4.2", "above the root, in absolute form", 400, "http://a/../hello.txt"},
    {"RFC 3986 2.2", "an escaped slash", 400, "/sub%2Fother.html"},
    {"RFC 3986 2.2", "an escaped slash, in small letters", 400, "/sub%2fother.html"},
    {"RFC 3986 2.2", "an escaped slash at the front", 400, "/%2Fhello.txt"},
    {"RFC 3986 7.3", "an escaped NUL", 400, "/%00"},
    {"RFC 3986 7.3", "an escaped NUL after a name", 400, "/hello.txt%00"},
    {"RFC 3986 7.3", "an escaped NUL before an extension", 400, "/hello.txt%00.html"},
    {"RFC 3986 2.1", "half an escape", 400, "/hello.txt%2"},
    {"RFC 3986 2.1", "a bad escape", 400, "/hello.txt%xx"},
}
for _, case in ipairs(missing) do
    local section, name, status, target = table.unpack(case)
    local shown = #target < 60 and target or target:sub(1, 20) .. "..."
    test(("%s: %s: %s"):format(section, name, shown), function()
        local reply = http.ask(server, http.request("GET " .. target))
        http.check_one_of(status, reply.status)
        check(not reply.body:find(server.parent, 1, true), "the root's name: " .. reply.body)
    end)
end

local outside = {
    "/../secret.txt", "/../../secret.txt", "/sub/../../secret.txt", "/./../secret.txt",
    "//../secret.txt", "/sub//../../secret.txt", "/sub/.././../secret.txt",
    "/%2e%2e/secret.txt", "/%2E%2E/secret.txt", "/.%2e/secret.txt", "/%2e./secret.txt",
    "/..%2fsecret.txt", "/..%2Fsecret.txt", "/%2e%2e%2fsecret.txt", "/sub/..%2f..%2fsecret.txt",
    "/..%5csecret.txt", "/..\\secret.txt", "/%5c..%5csecret.txt", "/sub\\..\\..\\secret.txt",
    "/%252e%252e/secret.txt", "/%252e%252e%252fsecret.txt", "/..%252fsecret.txt",
    "/%c0%ae%c0%ae/secret.txt", "/..%c0%afsecret.txt", "/%e0%80%ae%e0%80%ae/secret.txt",
    "/%uff0e%uff0e/secret.txt", "/..;/secret.txt", "/.../secret.txt", "/..../secret.txt",
    "/sub/..;a=b/..;c=d/secret.txt", "/..%00/secret.txt", "/%00/../secret.txt",
    "/..%0d%0a/secret.txt", "/hello.txt/../../secret.txt", "/hello.txt%00/../../secret.txt",
    "http://a/../secret.txt",
    "http://a/%2e%2e/secret.txt", "http://a/..%2fsecret.txt", "/?/../../secret.txt",
    "/..?/secret.txt", "/up/secret.txt", "/linked/../../secret.txt", "/up/../secret.txt",
    "/%2fetc/passwd", "//etc/passwd", "/slash/etc/passwd", "/....//....//secret.txt",
    "/sub/..%2e/secret.txt", "/~root/secret.txt", "/~/secret.txt", "/file:///etc/passwd",
}
for _, target in ipairs(outside) do
    test("RFC 9110 17.3: no file outside the root: " .. target, function()
        local sock <close> = server:connect()
        sock:send(http.request("GET " .. target, "Connection: close"))
        local said = sock:recv_all()
        check(said:find("^HTTP/1%.1 %d%d%d "), said)
        check(not said:find(site.SECRET, 1, true), "the secret was told")
        check(not said:find("root:", 1, true), "the system's users were told")
    end)
end

test("RFC 9110 17.3: --dot-files serves files whose names begin with a dot", function()
    equal(open:get("/.hidden").body, site.SECRET)
    equal(open:get("/.dir/file.txt").body, site.SECRET)
    equal(open:get("/../secret.txt").status, 400)
end)

test("RFC 9110 17.3: a named pipe is 404 and delays nobody", function()
    for _ = 1, 20 do
        equal(server:get_and_go_on("/fifo").status, 404)
    end
end)

test("RFC 3986 3.3: a target in absolute form without a path means /", function()
    equal(server:get("http://a").body, "<p>home\n")
end)

for _, target in ipairs{"//hello.txt", "/.//hello.txt", "/sub/..//hello.txt", "//sub//..//hello.txt",
                        "///./hello.txt", "/%2e///hello.txt"} do
    test("empty segments and dots are removed: " .. target, function()
        equal(server:get_and_go_on(target).body, site.HELLO)
    end)
end

for _, target in ipairs{"/a;b,c=d.txt", "/a%3Bb%2cc%3dd.txt", "/a%3bb,c%3Dd%2etxt"} do
    test("a byte and its percent-encoding mean the same file: " .. target, function()
        equal(server:get_and_go_on(target).body, "marks\n")
    end)
end

for _, query in ipairs{"%", "q=100%", "%zz&%4", "a=%2f..%2f..%00", "q={a|b}\\`^"} do
    test("a query does not change the file: ?" .. query, function()
        equal(server:get_and_go_on("/hello.txt?" .. query).body, site.HELLO)
    end)
end

for _, target in ipairs{"//../hello.txt", "/x//../../hello.txt", "/..//hello.txt", "/%2e%2e//x"} do
    test("a path above the root, with empty segments, is refused: " .. target, function()
        http.check_one_of(400, http.ask(server, http.request("GET " .. target)).status)
    end)
end

test("RFC 9110 15.5.5: a removed file becomes 404", function()
    server:write("short-lived.txt", "here\n")
    equal(server:get("/short-lived.txt").body, "here\n")
    os.remove(server.root .. "/short-lived.txt")
    require "httpd".wait_until(function()
        return server:get("/short-lived.txt").status == 404
    end, "a 404")
end)

test("RFC 9110 15.5.5: a new file is served after a 404 for it", function()
    equal(server:get("/late.txt").status, 404)
    server:write("late.txt", "late\n")
    require "httpd".wait_until(function()
        return server:get("/late.txt").status == 200
    end, "the file")
    equal(server:get("/late.txt").body, "late\n")
end)
