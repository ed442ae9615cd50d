-- SPDX-License-Identifier: MIT
-- The status page in a real browser: its numbers change under load, its buttons work, it logs no error to the console,
-- it fits a phone's screen, and without JavaScript it consists of tables.

local admin = require "admin"
local browser = require "browser"
local devtools = require "devtools"
local httpd = require "httpd"

if browser.missing then
    print("skipped: the status page in a browser, because " .. browser.missing)
    return
end

local server <close> = admin.start("-w", "2")
local driven <close> = devtools.start()
local url = ("http://127.0.0.1:%d/"):format(server.admin_port)

local function text(id)
    return driven:evaluate(("(document.getElementById('%s') || {}).textContent"):format(id))
end

local function wait_for(expression, what)
    httpd.wait_until(function() return driven:evaluate(expression) == "true" end, what)
end

local function open()
    driven:open(url)
    wait_for("document.readyState == 'complete' && document.title == 'sxe-httpd: status'", "the page")
end

local CONTACT = "document.getElementById('contact').textContent == 'up to date'"

local function ask_the_server()
    local sock <close> = server:connect()
    sock:send(httpd.LAST)
    sock:recv_all()
end

test("the page's numbers change under load", function()
    open()
    wait_for(CONTACT, "the first figures from /status.json")
    local moved = false
    httpd.wait_until(function()
        ask_the_server()
        moved = (tonumber(text("rate")) or 0) > 0 and tonumber(text("total")) > 3
        return moved
    end, "a rate above 0")
    wait_for("document.getElementById('rate-of').textContent == ''", "the rate of the last second")
    local total = tonumber(text("total"))
    ask_the_server()
    wait_for(("Number(document.getElementById('total').textContent) > %d"):format(total), "one request more")
    wait_for("document.getElementById('heat-plot').getAttribute('aria-label').startsWith('Latency: half')",
             "a latency in words")
    equal(driven:evaluate([[(() => { const plot = document.getElementById('heat-plot');
        return plot.getContext('2d').getImageData(0, 0, plot.width, plot.height).data.some(byte => byte > 0) })()]]),
        "true", "a field of the heat strip that is drawn")
end)

test("a button sets the log level, by keyboard alone", function()
    open()
    driven:evaluate("document.getElementById('level').value = 'debug'")
    driven:evaluate("document.querySelector('form[action=\"/log-level\"] button').focus()")
    driven:press("Enter", 13, "\r")
    wait_for("document.getElementById('answer').textContent == 'all workers log at this level within a second'", "the answer")
    check(server:get("/status.json"):find('"log_level":"debug"', 1, true), "the level")
end)

test("everything can be reached by the keyboard", function()
    open()
    local seen = {}
    for _ = 1, 20 do
        driven:press("Tab", 9)
        local where = driven:evaluate("document.activeElement.tagName")
        seen[where] = true
    end
    for _, name in ipairs{"BUTTON", "SELECT", "SUMMARY", "DIV"} do
        check(seen[name], "no Tab leads to " .. name)
    end
end)

test("the page fits a phone", function()
    driven:call("Emulation.setDeviceMetricsOverride",
                '{"width":360,"height":800,"deviceScaleFactor":1,"mobile":false}')
    open()
    equal(driven:evaluate("document.documentElement.scrollWidth <= 360"), "true", "wider than the window")
    driven:call("Emulation.clearDeviceMetricsOverride")
end)

test("every control, table and drawing has a name", function()
    open()
    equal(driven:evaluate([[Array.from(document.querySelectorAll("canvas")).every(one => one.getAttribute("aria-label"))
        && Array.from(document.querySelectorAll("select")).every(one => one.labels.length == 1)
        && Array.from(document.querySelectorAll("button, summary, th")).every(one => one.textContent.trim())
        && Array.from(document.querySelectorAll("[aria-labelledby]")).every(
               one => document.getElementById(one.getAttribute("aria-labelledby")))]]), "true")
end)

test("without JavaScript the page is tables, and its buttons work", function()
    driven:call("Emulation.setScriptExecutionDisabled", '{"value":true}')
    driven:open(url)
    wait_for("document.readyState == 'complete' && document.title == 'sxe-httpd: status'"
             .. " && document.getElementById('charts').hidden", "the page, without charts")
    check(tonumber(text("total")) > 3, "requests")
    driven:evaluate("document.getElementById('level').value = 'error'")
    driven:evaluate("document.querySelector('form[action=\"/log-level\"] button').focus()")
    driven:press("Enter", 13, "\r")
    httpd.wait_until(function()
        return server:get("/status.json"):find('"log_level":"error"', 1, true)
    end, "the level")
    wait_for("document.readyState == 'complete' && document.getElementById('level')"
             .. " && document.getElementById('level').value == 'error'", "the page again")
    driven:call("Emulation.setScriptExecutionDisabled", '{"value":false}')
end)

test("the page logs nothing, and its Content-Security-Policy blocks nothing", function()
    open()
    wait_for(CONTACT, "figures")
    equal(table.concat(driven.logged, "\n"), "")
end)

test("the drain button ends the server, and the page says that the server is gone", function()
    open()
    driven:evaluate("document.querySelector('details').open = true")
    driven:evaluate("document.querySelector('form[action=\"/drain\"] button').click()")
    wait_for("document.getElementById('contact').className.includes('bad')", "that it does not answer")
    equal(server.proc:wait(60), 0, server.proc:errors())
end)
