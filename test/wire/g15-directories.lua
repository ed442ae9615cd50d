-- SPDX-License-Identifier: MIT
-- Directories: redirects to the name with a slash, index files and listings. RFC 9110 sections 10.2.2 and 15.4.2, RFC
-- 3986 section 2.

local http = require "http"
local site = require "site"
local request = http.request
local server <close> = site.start()
local listing <close> = site.start("--listing", "--index", "start.html")

server:mkdir("a b")
server:mkdir("caf\xc3\xa9")
server:mkdir("100%")
server:mkdir("evil.example/sub")

local redirects = {
    {"RFC 9110 15.4.2", "/sub", "/sub/"},
    {"RFC 9110 15.4.2", "/bare", "/bare/"},
    {"RFC 9110 15.4.2", "/sub/../sub", "/sub/"},
    {"RFC 9110 15.4.2", "/./sub", "/sub/"},
    {"RFC 9110 15.4.2", "/.well-known", "/.well-known/"},
    {"RFC 3986 2.1", "/%73ub", "/sub/"},
    {"RFC 3986 2.1", "/a%20b", "/a%20b/"},
    {"RFC 3986 2.1", "/caf%c3%a9", "/caf%C3%A9/"},
    {"RFC 3986 2.1", "/100%25", "/100%25/"},
    {"RFC 9112 3.2.2", "http://a/sub", "/sub/"},
    {"RFC 9112 3.2.2", "http://evil.example/sub", "/sub/"},
}
for _, case in ipairs(redirects) do
    local section, target, location = table.unpack(case)
    test(("%s: %s is redirected to %s"):format(section, target, location), function()
        local reply = server:get_and_go_on(target)
        equal(reply.status, 301)
        equal(reply.headers.location, location)
    end)
end

test("RFC 9110 10.2.2: a redirect may keep the query or drop it, but not make it a part of the path", function()
    local location = server:get("/sub?a=b").headers.location
    check(location == "/sub/" or location == "/sub/?a=b", location)
end)

for _, target in ipairs{"//evil.example", "//evil.example/sub", "///evil.example",
                        "/.//evil.example", "/sub/..//evil.example", "/%5cevil.example",
                        "/\\evil.example",
                        "http://a//evil.example"} do
    test(("RFC 9110 17.3: %s is not redirected to another host"):format(target), function()
        local location = http.ask(server, request("GET " .. target)).headers.location
        check(not location or location:find("^/[^/\\]"), location)
    end)
end

test("RFC 9112 11.1: line ends in a path do not make a field of the reply", function()
    server:mkdir("x\r\nX-Evil: yes")
    for _, target in ipairs{"/x%0d%0aX-Evil:%20yes", "/%0d%0aX-Evil:%20yes", "/x%0aX-Evil:yes"} do
        equal(http.ask(server, request("GET " .. target)).headers["x-evil"], nil)
    end
end)

test("RFC 9110 15.4.2: HEAD of a directory is redirected too", function()
    local reply = http.ask(server, request("HEAD /sub"))
    equal(reply.status, 301)
    equal(reply.headers.location, "/sub/")
end)

local indexes = {
    {"/", "<p>home\n"},
    {"/sub/", "<p>sub\n"},
    {"/sub/?a=b", "<p>sub\n"},
    {"/sub/.", "<p>sub\n"},
    {"/sub/../", "<p>home\n"},
    {"/sub/..", "<p>home\n"},
    {"/index.html", "<p>home\n"},
}
for _, case in ipairs(indexes) do
    local target, body = table.unpack(case)
    test(("RFC 3986 5.2.4: %s has an index"):format(target), function()
        local reply = server:get_and_go_on(target)
        equal(reply.status, 200)
        equal(reply.body, body)
        equal(reply.headers["content-type"]:match("^[^;]*"), "text/html")
    end)
end

test("RFC 9110 15.5.4: a directory without an index is not listed", function()
    local reply = server:get_and_go_on("/bare/")
    equal(reply.status, 403)
    check(not reply.body:find("file.txt", 1, true), reply.body)
end)

test("RFC 9110 15.5.4: a directory with the name of an index is ignored", function()
    server:mkdir("odd/index.html")
    http.check_one_of({403, 404}, server:get_and_go_on("/odd/").status)
end)

test("RFC 9110 15.5.4: an index that is a link out of the root is ignored", function()
    server:mkdir("linked")
    server:link("../../secret.txt", "linked/index.html")
    local reply = server:get_and_go_on("/linked/")
    http.check_one_of({403, 404}, reply.status)
    check(not reply.body:find(site.SECRET, 1, true), "the secret was told")
end)

-- ---- Listings ----

listing:write("shown/file.txt", "x")
listing:write("shown/with space.txt", "x")
listing:write("shown/<b>&\"'.txt", "x")
listing:write("shown/100%.txt", "x")
listing:write("shown/question?.txt", "x")
listing:write("shown/a#b.txt", "x")
listing:write("shown/javascript:alert(1)", "x")
listing:write("shown/.hidden", "x")
listing:mkdir("shown/directory")
listing:mkdir("empty")

test("RFC 9110 15.3.1: a listing is a page of links", function()
    local reply = listing:get_and_go_on("/shown/")
    equal(reply.status, 200)
    equal(reply.headers["content-type"]:lower():gsub(" ", ""), "text/html;charset=utf-8")
    check(reply.body:find("href=\"file.txt\"", 1, true) or
          reply.body:find("href=\"./file.txt\"", 1, true) or
          reply.body:find("href=\"/shown/file.txt\"", 1, true), reply.body)
end)

-- The targets of all links of a listing, without that to the parent directory.
local function targets_of(page)
    local targets = {}
    for link in page:gmatch("href=\"([^\"]*)\"") do
        link = link:gsub("&amp;", "&"):gsub("&#39;", "'"):gsub("&#x27;", "'")
        if link:find("^%.?%./?$") or link == "/" then
            link = nil
        elseif not link:find("^/") then
            check(not link:find("^[%w+.-]+:"), "a scheme: " .. link)
            link = "/shown/" .. link
        end
        targets[#targets + 1] = link
    end
    return targets
end

test("RFC 3986 4.2: every link of a listing leads to the file that it names", function()
    local targets = targets_of(listing:get("/shown/").body)
    check(#targets >= 8, table.concat(targets, " "))
    for _, target in ipairs(targets) do
        local reply = listing:get(target)
        if target:find("directory", 1, true) then
            http.check_one_of({200, 301}, reply.status)
        else
            equal(reply.body, "x", target)
        end
    end
end)

test("RFC 9110 17.3: names in a listing are escaped", function()
    local page = listing:get("/shown/").body
    check(not page:find("<b>", 1, true), page)
    check(page:find("&lt;b&gt;", 1, true), page)
end)

test("RFC 9110 17.3: a listing hides dot files", function()
    check(not listing:get("/shown/").body:find(".hidden", 1, true), "hidden")
end)

test("RFC 9110 15.3.1: an empty directory has a listing", function()
    equal(listing:get_and_go_on("/empty/").status, 200)
end)

test("RFC 9110 9.3.2: HEAD of a listing has its fields and no body", function()
    local sock <close> = listing:connect()
    sock:send(request("HEAD /shown/", "Connection: close"))
    local reply = sock:read_reply("HEAD")
    equal(reply.status, 200)
    equal(reply.headers["content-type"], listing:get("/shown/").headers["content-type"])
    equal(sock:recv_all(), "")
end)

test("RFC 9110 15.5.6: a listing does not allow POST", function()
    equal(http.ask(listing, request("POST /shown/")).status, 405)
end)

test("RFC 9110 17.3: the path in a listing is escaped", function()
    listing:mkdir("<i>")
    check(not listing:get("/%3Ci%3E/").body:find("<i>", 1, true), "markup")
end)

test("RFC 9110 15.3.1: a directory of 3,000 files is listed completely", function()
    listing:mkdir("many")
    for i = 1, 3000 do
        io.open(("%s/many/file-%04d"):format(listing.root, i), "w"):close()
    end
    local reply = listing:get_and_go_on("/many/")
    equal(reply.status, 200)
    local _, links = reply.body:gsub("file%-%d%d%d%d\"", "")
    equal(links, 3000)
end)

test("RFC 9110 15.4.2: an index file of another name (--index)", function()
    listing:write("named/start.html", "<p>start\n")
    equal(listing:get("/named/").body, "<p>start\n")
    check(listing:get("/sub/").body ~= "<p>sub\n", "index.html is not its index here")
end)
