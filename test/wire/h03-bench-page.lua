-- SPDX-License-Identifier: MIT
-- The page of the benchmarks in a real browser: every row has a plot and numbers, the page fits a phone's screen, and
-- no text of a result is interpreted as HTML.

package.path = package.path .. ";bench/lib/?.lua"

local browser = require "browser"
local page = require "page"

if browser.missing then
    print("skipped: the page in a browser, because " .. browser.missing)
    return
end

local function peer(name, values, more)
    local got = {name = name, title = name, values = values, median = values[2], min = values[1],
                 max = values[3], ratio = values[2] and values[2] / 200000, cpu_server = 0.97,
                 cpu_client = 0.5, bottleneck = "server", more = {p50 = 230, p99 = 472.5}}
    for key, value in pairs(more or {}) do
        got[key] = value
    end
    return got
end

local function row(name, group, peers, more)
    local got = {name = name, title = "Row " .. name, group = group, work = "what is done",
                 command = "sxe-http -c 64 URL", checks = "status", void = "an error",
                 unit = "replies/s", better = "more", reference = "limit", ours = "sxe-httpd",
                 seconds = 1, rounds = 3, is_void = false, void_samples = {}, lost = 0.01,
                 peers = peers, targets = {}, skipped = {}}
    for key, value in pairs(more or {}) do
        got[key] = value
    end
    return got
end

local function curve(us)
    return {{0, us / 2}, {50, us}, {90, us * 1.2}, {99, us * 2}, {99.9, us * 9}}
end

local function line(value)
    return {points = {{x = 10000, value = value, min = value * 0.9, max = value * 1.1,
                       memory = 1e7},
                      {x = 100000, value = value / 2, memory = 9e7}}}
end

local function candles(us)
    local list = {}
    for servers = 1, 2 do
        for _, kind in ipairs{"read", "append"} do
            list[#list + 1] = {servers = servers, clients = 4, kind = kind, min = us / 2,
                               mean = us, p = us * 1.01, max = us * 8, rounds = 3}
        end
    end
    return {candles = list}
end

local got = {
    version = 2, date = "2026-11-21T10:00:00Z", machine = {text = "a machine"}, took_s = 600,
    missing = {"S4", "S6"},
    rows = {
        row("bars", "http", {
            peer("limit", {190000, 200000, 210000}, {curve = curve(200)}),
            peer("sxe-httpd", {180000, 198000.5, 205000},
                 {curve = curve(210), second = {client = "/usr/bin/wrk -t 1 URL", name = "wrk",
                                                median = 150000, bottleneck = "client"}}),
            peer("nginx", {90000, 100000, 110000}, {curve = curve(400)})},
            {targets = {{peer = "limit", ratio = 0.93, of = "issue 3", got = 0.99, is_met = true,
                         better = "more"},
                        {key = "memory", value = 1024, of = "an issue with a long title", got = 7,
                         is_met = true, better = "less"},
                        {peer = "nginx", ratio = 2, of = "issue 3", got = 1.98, is_met = false,
                         better = "more"}},
             second_why = "0.30 CPU taken by others",
             disagreement = {"sxe-httpd: 0.76 of the rate by wrk"},
             skipped = {{name = "h2o", why = "h2o is not installed"}}}),
        row("lines", "seed", {peer("sxe-httpd", {}, line(200000)), peer("go", {}, line(150000))},
            {x_title = "open connections", is_exact = true}),
        row("candles", "seed",
            {peer("sxe-httpd", {}, candles(100)), peer("node", {}, candles(300))}),
        row("void", "micro", {peer("sxe-httpd", {40, 41.5, 43})},
            {date = "2026-11-22T01:02:03Z", commit = "0123abc",
             is_void = true, why_void = "0.20 CPU taken by others", unit = "ns", better = "less",
             void_samples = {{round = 1, peer = "sxe-httpd", why = "0.20 CPU taken by others"}}}),
    },
}

local function write(name, result)
    page.write(result, "bench/page.html", browser.path(name))
end

local function count(text, pattern)
    return select(2, text:gsub(pattern, ""))
end

browser.start()
write("page.html", got)
local document = browser.open("page.html")

test("each row has a section, with its badge, plots and numbers", function()
    equal(browser.found(document, "drawn"), "4")
    equal(count(document, '<section id="row%-'), 4)
    equal(count(document, '<svg role="img"'), 7) -- bars; lines and candles, twice each; a curve
    check(document:find('data-row="bars" data-peer="sxe-httpd" data-value="198000.5"', 1, true),
          "the number of the result")
    check(document:find("✓ at least 0.93 of limit (issue 3): 0.99", 1, true), "a target met")
    check(document:find("✗ at least 2 of nginx (issue 3): 1.98", 1, true), "one that is missed")
    check(document:find("Void: 0.20 CPU taken by others", 1, true), "the void row")
    check(document:find("Two clients disagree: sxe-httpd: 0.76 of", 1, true), "the disagreement")
    check(document:find("Void are the rounds of the second client: 0.30 CPU", 1, true), "theirs")
    equal(count(document, "<li>Of 3 rounds.</li>"), 3)
    check(document:find("counted, not timed", 1, true), "what does not depend on others")
    check(document:find("shortest, mean, longest, of 3 rounds;", 1, true), "whose candles")
    check(document:find("Not measured: h2o: h2o is not installed", 1, true), "who is not here")
    check(document:find("2026-11-21 to 2026-11-22 on a machine", 1, true), "days and machine")
    check(document:find("2026-11-22 01:02:03 UTC, of commit 0123abc", 1, true), "a row's own time")
    check(document:find("Not measured: S4, S6.", 1, true), "what is missing")
    equal(count(document:match('<section id="targets".-<details'), "✗ missed"), 1)
    equal(count(document:match('<section id="targets".-<details'), "✓ met"), 0)
end)

test("every plot has shapes in it and a text alternative", function()
    for plot in document:gmatch('<svg role="img".-</svg>') do
        check(plot:find('aria%-label="%u'), "no label: " .. plot:sub(1, 200))
        check(plot:find("<rect") or plot:find('d="M%d'), "nothing drawn: " .. plot:sub(1, 200))
        check(not plot:find("NaN") and not plot:find("Infinity"), plot)
    end
    equal(count(document:match('Bars of replies/s.-</svg>'), 'class="whisker"'), 9)
    equal(count(document:match('Candles of read.-</svg>'), "<title>"), 4)
end)

test("ranges of lines are within their plot", function()
    local number = 0
    for top in document:match("Lines of replies/s.-</svg>"):gmatch('y2="([%d.-]+)" style') do
        number = number + 1
        check(tonumber(top) >= 14, "a range ends at " .. top) -- 14 is the plot's upper edge
    end
    equal(number, 2)
end)

test("the published tables come first", function()
    local seed, http = document:find("The published tables</h2>", 1, true),
                       document:find("Requests</h2>", 1, true)
    check(seed and http and seed < http, "the order of the groups")
end)

test("the page is readable at 800 pixels and fits a phone", function()
    for _, pixels in ipairs{800, 360} do
        local wide = browser.width("page.html", pixels)
        check(wide <= pixels, ("%d of %d pixels"):format(wide, pixels))
    end
end)

test("the targets fit a phone without scrolling", function()
    local _, unseen = browser.width("page.html", 390, "#targets .scroll")
    equal(unseen, 0)
end)

test("the light and the dark scheme have their own colours", function()
    local changed = browser.open("page.html", [[
        const back = () => getComputedStyle(document.body).backgroundColor, was = back();
        document.getElementById("theme").click();
        found.differ = back() !== was;
        document.getElementById("theme").click();
        found.same = back() === was;
    ]])
    equal(browser.found(changed, "differ"), "true")
    equal(browser.found(changed, "same"), "true")
end)

test("the text beside a bar stays within the plot, however long", function()
    local long = got.rows[4]
    long.unit, long.peers[1].title = "operations of both/second", "text, 66 bytes to escape, MIM"
    write("long.html", got)
    long.unit, long.peers[1].title = "ns", "sxe-httpd"
    local document = browser.open("long.html", [[
        const svg = document.querySelector("#row-void figure svg");
        const edge = svg.getBoundingClientRect();
        found.within = [...svg.querySelectorAll("text")].every(
            text => text.getBoundingClientRect().right <= edge.right
                    && text.getBoundingClientRect().left >= edge.left);
    ]])
    equal(browser.found(document, "within"), "true")
end)

test("a button hides its line, and shows it again", function()
    local changed = browser.open("page.html", [[
        const plot = document.querySelector("#row-lines figure");
        const lines = () => plot.querySelectorAll("path").length, before = lines();
        const button = plot.querySelector(".legend button");
        button.click();
        found.hidden = lines() === before - 1 && button.getAttribute("aria-pressed") === "false";
        button.click();
        found.back = lines() === before;
    ]])
    equal(browser.found(changed, "hidden"), "true")
    equal(browser.found(changed, "back"), "true")
end)

test("no text of a result becomes a part of the page", function()
    local title = got.rows[1].title
    got.rows[1].title =
        "</script><script>document.body.dataset.owned = 1</script><b id=owned>"
    write("hostile.html", got)
    got.rows[1].title = title
    local hostile = browser.open("hostile.html")
    equal(browser.found(hostile, "drawn"), "4")
    equal(browser.found(hostile, "owned"), nil)
    check(hostile:find("&lt;b id=owned&gt;", 1, true), "the text")
end)

test("the page loads nothing from the network", function()
    local text = browser.read("page.html")
    check(text:find("default-src 'none'", 1, true), "no policy")
    for address in text:gmatch("https?://[%w./]+") do
        equal(address, "http://www.w3.org/2000/svg")
    end
end)

browser.finish()
