-- SPDX-License-Identifier: MIT
-- The page of sxe-http --html in a real browser: scripts run without an error, the page shows the numbers of --json,
-- fits a phone's screen, and can be used without a mouse.

local browser = require "browser"
local cli = require "cli"
local httpd = require "httpd"

if browser.missing then
    print("skipped: the page in a browser, because " .. browser.missing)
    return
end

local path, read, write = browser.path, browser.read, browser.write
local open, found = browser.open, browser.found

-- Run sxe-http and write its results to NAME.json and NAME.html.
local function run(name, ...)
    local ran = cli.run("sxe-http", "-q", "--json", path(name .. ".json"), "--html",
                        path(name .. ".html"), ...)
    check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
end

-- The data-value of a figure in the page's table: figure(document, "p50", 1) is that of the second run.
local function figure(document, name, number)
    for cell in document:gmatch("<td[^>]*>") do
        if cell:find(('data-figure="%s"'):format(name), 1, true)
           and cell:find(('data-run="%d"'):format(number or 0), 1, true) then
            return tonumber(cell:match('data%-value="([^"]*)"'))
        end
    end
    error("no figure " .. name, 2)
end

-- A number of the JSON file's object "total": total("a", "service", "p50").
local function total(name, group, key)
    local text = read(name .. ".json"):match('\n  "total": (%b{})')
    if group then
        text = text:match('"' .. group .. '": (%b{})')
    end
    return tonumber(text:match('"' .. key .. '": ([%d.e+-]+)'))
end

-- A result whose text would end the page's script element, if the page did not escape it.
local function hostile()
    return (read("a.json"):gsub('"what": "[^"]*"',
        '"what": "</script><script>document.body.dataset.owned = 1</script><b id=owned>"'))
end

browser.start()
do
    local server <close> = httpd.start()
    run("a", "-c", "4", "-n", "500", server.url)
    run("b", "-c", "4", "-R", "2k", "-d", "1", server.url)
    run("probed", "-c", "4", "-d", "0.2", "--probe", "500", server.url)
    local both = cli.run("sxe-http", "html", path("a.json"), path("b.json"))
    equal(both.status, 0, both.errors)
    write("both.html", both.output)
end

test("the page is drawn and shows the numbers of the JSON", function()
    local document = open("a.html")
    equal(found(document, "drawn"), "1")
    equal(figure(document, "rate"), total("a", nil, "rate"))
    equal(figure(document, "offered"), 2000)
    equal(figure(document, "errors"), 0)
    for _, group in ipairs{"service", "first_byte", "connect"} do
        for _, key in ipairs{"mean", "max"} do
            equal(figure(document, group .. "." .. key), total("a", group, key),
                  group .. "." .. key)
        end
    end
    equal(figure(document, "service.p99"), total("a", "service", "p99"))
    check(document:find("<title>sxe-http: GET http://", 1, true), "no title")
    for _, title in ipairs{"Latency by percentile", "Kinds of requests", "Figures", "Accounts",
                           "The client itself", "Where it was measured"} do
        check(document:find(">" .. title .. "</h2>", 1, true), "no section " .. title)
    end
end)

test("every chart has lines in it and a text alternative", function()
    local document = open("b.html")
    local charts = 0
    for chart in document:gmatch('<svg role="img".-</svg>') do
        charts = charts + 1
        check(chart:find('aria%-label="%u'), "no label: " .. chart:sub(1, 200))
        check(chart:find('d="M%d'), "no line: " .. chart:sub(1, 200))
        check(not chart:find("NaN") and not chart:find("Infinity"), chart)
    end
    equal(charts, 4)
end)

test("the page fits a phone: only tables are wider than the screen", function()
    for _, name in ipairs{"a.html", "b.html", "both.html"} do
        local wide = browser.width(name, 360)
        check(wide <= 360, ("%s: %d pixels"):format(name, wide))
    end
end)

test("the light and the dark scheme have their own colours, and both show the charts", function()
    local document = open("a.html", [[
        const back = () => getComputedStyle(document.body).backgroundColor;
        const button = document.getElementById("theme");
        const theme = () => document.documentElement.dataset.theme;
        const themes = [theme()], backs = [back()];
        button.click();
        themes.push(theme());
        backs.push(back());
        button.click();
        found.themes = themes.sort().join(" ");
        found.differ = backs[0] !== backs[1];
        found.same = back() === backs[0];
    ]])
    equal(found(document, "themes"), "dark light")
    equal(found(document, "differ"), "true")
    equal(found(document, "same"), "true")
end)

test("a chart shows its values by mouse and by keyboard, and can hide a line", function()
    local document = open("b.html", [[
        const chart = document.querySelector("svg[role=img]"), tip = chart.nextElementSibling;
        chart.focus();
        chart.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
        found.keyed = !tip.hidden && tip.textContent.includes("service time: ");
        chart.dispatchEvent(new PointerEvent("pointerleave"));
        found.left = tip.hidden;
        chart.dispatchEvent(new PointerEvent("pointermove", {clientX: 500}));
        found.pointed = !tip.hidden;
        const lines = () => chart.querySelectorAll("path").length, before = lines();
        const button = chart.parentNode.querySelector(".legend button");
        button.click();
        found.hidden = lines() < before && button.getAttribute("aria-pressed") === "false";
        button.click();
        found.back = lines() === before;
    ]])
    for _, name in ipairs{"keyed", "left", "pointed", "hidden", "back"} do
        equal(found(document, name), "true", name)
    end
end)

test("several runs are laid over one another, each with its own column", function()
    local document = open("both.html")
    equal(found(document, "drawn"), "2")
    equal(figure(document, "rate", 0), total("a", nil, "rate"))
    equal(figure(document, "rate", 1), total("b", nil, "rate"))
    equal(figure(document, "response.p50", 1), total("b", "response", "p50"))
    check(document:find(">2 runs compared</h1>", 1, true), "the title")
    check(document:find("2 b.json, response time", 1, true), "a legend")
    check(document:find('<tr class="differs"><th scope="row">', 1, true), "what differs")
end)

test("a probe has its own line and times beside the load's", function()
    local document = open("probed.html")
    local probe = read("probed.json"):match('\n  "total": (%b{})'):match('"probe": (%b{})')
    for _, key in ipairs{"mean", "max"} do
        for _, group in ipairs{"service", "response"} do
            equal(figure(document, ("probe.%s.%s"):format(group, key)),
                  tonumber(probe:match('"' .. group .. '": (%b{})')
                                :match('"' .. key .. '": ([%d.e+-]+)')), group .. "." .. key)
        end
    end
    check(document:find("<span>probe's response time</span>", 1, true), "a legend")
    local both = cli.run("sxe-http", "html", path("a.json"), path("probed.json"))
    equal(both.status, 0, both.errors)
    write("both-probed.html", both.output)
    check(open("both-probed.html"):find("2 probed.json, probe's response time", 1, true))
end)

test("a run has its colour in every chart, also in charts that lack other runs", function()
    local steps = [[{"rate": 10, "achieved": 10, "p50": 5, "p99": 7, "holds": true},
                    {"rate": 20, "achieved": 11, "p50": 6, "p99": 9, "holds": false}]]
    local find = ('"find": {"condition": "p99<8us", "found_rate": 10, "steps": [%s]}'):format(steps)
    write("find.json", (read("b.json"):gsub('"find": null', find)))
    local ran = cli.run("sxe-http", "html", path("a.json"), path("find.json"), path("find.json"))
    equal(ran.status, 0, ran.errors)
    write("find.html", ran.output)
    local document = open("find.html", [[
        const colours = id => [...new Set([...document.querySelectorAll(
            `[aria-labelledby=${id}] .legend line`)].map(line => line.style.stroke))].join(" ");
        found.curves = colours("s-latency-by-percentile");
        found.load = colours("s-latency-against-load");
    ]])
    equal(found(document, "curves"), "var(--c0) var(--c1) var(--c2)")
    equal(found(document, "load"), "var(--c1) var(--c2)")
end)

test("the tile of errors counts all queries that could end, also those in flight at the start", function()
    write("carried.json", (read("a.json"):gsub('"carried": 0', '"carried": 7')
                                         :gsub('"in_flight": 0', '"in_flight": 7')))
    local ran = cli.run("sxe-http", "html", path("carried.json"))
    equal(ran.status, 0, ran.errors)
    write("carried.html", ran.output)
    check(open("carried.html"):find(">errors of 2,007</span>", 1, true), "the tile")
end)

test("no text of a run becomes a part of the page", function()
    write("hostile.json", hostile())
    local ran = cli.run("sxe-http", "html", path("hostile.json"))
    equal(ran.status, 0, ran.errors)
    write("hostile.html", ran.output)
    local document = open("hostile.html")
    equal(found(document, "drawn"), "1")
    equal(found(document, "owned"), nil)
    check(not document:find("<b id=", 1, true), "an element")
    check(document:find("&lt;b id=owned&gt;</h1>", 1, true), "the text")
end)

test("the page loads nothing from the network", function()
    local page = read("a.html")
    check(page:find("default-src 'none'", 1, true), "no policy")
    for address in page:gsub("<script type=\"application/json\".-</script>", "")
                       :gmatch("https?://[%w./]+") do
        equal(address, "http://www.w3.org/2000/svg")
    end
end)

browser.finish()
