-- SPDX-License-Identifier: MIT
--
-- The application in examples/app: its own tests, with one process and with two; its unit; its page in a browser.

local browser = require "browser"
local devtools = require "devtools"
local httpd = require "httpd"
local project = require "project"

if not os.execute(wire.program "sxe-lua" .. " -e 'require \"sxe.crypto\" require \"sxe.store\"' >/dev/null 2>&1") then
    print "skipped: examples/app, because sxe-lua was built without OpenSSL or LMDB"
    return
end

local function start(data, ...)
    local command = table.concat({project.program "sxe-httpd", "--lua app.lua -p 0", ...}, " ")
    return httpd.spawn{"sh", "-c", ("cd examples/app && exec %s -- '%s'"):format(command, data),
                       env = {SXE_LOG_LEVEL = "error"}}
end

-- Run the tests of the application, which write TAP, with a server at `url`, or one of their own.
local function run_tests(data, url)
    local proc <close> = wire.spawn{"sh", "-c", ("cd examples/app && exec %s test/app.lua '%s'"):format(
        project.program "sxe-lua", data), env = {URL = url, SXE_LOG_LEVEL = "error"}}
    local output = proc:output(600)
    local status = proc:wait(60)
    check(not output:find "not ok" and output:find "\nok 26 ", output .. proc:errors())
    equal(status, 0)
end

test("its tests pass in one process", function()
    local work <close> = project.start()
    run_tests(work:path "data")
end)

test("its tests pass with two processes", function()
    local work <close> = project.start()
    local server <close> = start(work:path "data", "-w 2")
    run_tests(work:path "none", server.url:sub(1, -2))
end)

test("its unit is valid, and as safe as that of examples/deploy", function()
    if not wire.has "systemd-analyze" then
        print "skipped: the unit of examples/app, because systemd-analyze is not installed"
        return
    end
    local work <close> = project.start()
    equal(work:sh(([[mkdir -p b.service.d && cp %s/examples/deploy/sxe-httpd.service b.service &&
        sed "s|/usr/local/bin/sxe-httpd|$SXE_HTTPD|" %s/examples/app/board.conf >b.service.d/board.conf &&
        SYSTEMD_UNIT_PATH=$PWD: systemd-analyze security --offline=true --threshold=20 b.service]]):format(
            project.root, project.root)), 0)
end)

-- ---- A browser ----

if browser.missing then
    print("skipped: the page of examples/app, because " .. browser.missing)
    return
end

test("a browser signs up, posts a picture, and sees it without a reload", function()
    local work <close> = project.start()
    local server <close> = start(work:path "data", "-w 2")
    local driven <close> = devtools.start()
    local url = server.url:sub(1, -2)

    local function wait_for(expression)
        httpd.wait_until(function()
            local good, value = pcall(driven.evaluate, driven, expression) -- while a page loads there is none
            return good and value == "true"
        end, expression)
    end

    driven:open(url .. "/signup")
    wait_for "document.title == 'Sign up' && document.readyState == 'complete'"
    driven:evaluate [[(document.querySelector("[name=name]").value = "ann",
        document.querySelector("[name=password]").value = "correct horse", document.querySelector("main form").requestSubmit())]]
    wait_for "document.querySelector('#new') && document.readyState == 'complete'"
    driven:evaluate [[(() => {
        const canvas = document.createElement("canvas"), form = document.querySelector("#new");
        canvas.width = canvas.height = 40;
        canvas.getContext("2d").fillRect(10, 10, 20, 20);
        canvas.toBlob(blob => {
            const files = new DataTransfer();
            files.items.add(new File([blob], "a square.png", { type: "image/png" }));
            form.querySelector("[type=file]").files = files.files;
            form.querySelector("textarea").value = "<b>a</b> & \"b\"";
            form.requestSubmit();
        });
    })()]]
    wait_for "document.querySelectorAll('#posts li').length == 1 && document.querySelector('img').naturalWidth == 40"
    wait_for "document.querySelector('#posts small').textContent.startsWith('sha256 ')"
    equal(driven:evaluate "document.querySelector('.text').textContent", '<b>a</b> & "b"')
    equal(driven:evaluate "document.querySelector('.text').children.length", "0")
    equal(driven:evaluate "document.querySelector('#new textarea').value", "")
    equal(driven:evaluate "document.querySelector('img').alt", "a square.png")
    driven:call("Emulation.setDeviceMetricsOverride", '{"width":360,"height":800,"deviceScaleFactor":1,"mobile":false}')
    wait_for "document.documentElement.clientWidth == 360"
    equal(driven:evaluate "document.documentElement.scrollWidth", "360", "the width on a phone")
    equal(table.concat(driven.logged, "\n"), "", "what the page logged")
    local shots = os.getenv "SXE_SHOTS"
    for _, scheme in ipairs(shots and {"light", "dark"} or {}) do
        driven:call("Emulation.setDeviceMetricsOverride", '{"width":800,"height":600,"deviceScaleFactor":1,"mobile":false}')
        driven:call("Emulation.setEmulatedMedia", ('{"features":[{"name":"prefers-color-scheme","value":"%s"}]}'):format(scheme))
        local file <close> = assert(io.open(shots .. "/" .. scheme .. ".b64", "w"))
        file:write(driven:call("Page.captureScreenshot"):match '"data":"([^"]+)"')
    end
    driven:evaluate "document.querySelector('header form').requestSubmit()"
    wait_for "document.querySelector('header nav') && !document.querySelector('#new')"
    equal(driven:evaluate "document.querySelectorAll('#posts li').length", "1")
end)
