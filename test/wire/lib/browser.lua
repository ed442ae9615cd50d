-- SPDX-License-Identifier: MIT
--
-- Loads pages in a real browser without a window, and returns the document as it is after its scripts ran. The files
-- are in a temporary directory, which finish() removes.

local browser = {}

local scratch = os.tmpname()
local program = wire.has("chromium")

-- Why there is no browser, or nil.
browser.missing = not program and "chromium is not installed"
                  or os.getenv("SXE_LARGE_PEERS") == "0" and "make check does without it" or nil

-- Run a shell command in which $1 is the temporary directory and $2 the browser.
function browser.sh(command, seconds)
    local proc <close> = wire.spawn{"sh", "-c", command, "sh", scratch, program or "none"}
    local output = proc:output(seconds or 20)
    return proc:wait(20), output, proc:errors()
end

function browser.start()
    os.remove(scratch)
    assert(browser.sh('mkdir "$1"') == 0)
end

function browser.finish()
    browser.sh('rm -rf "$1"')
end

function browser.path(name)
    return scratch .. "/" .. name
end

function browser.read(name)
    local file <close> = assert(io.open(browser.path(name), "rb"))
    return file:read("a")
end

function browser.write(name, bytes)
    local file <close> = assert(io.open(browser.path(name), "wb"))
    file:write(bytes)
end

-- Load a file; return its document after its scripts ran. Fails if the page logged anything to the console.
function browser.browse(name)
    local status, document, errors = browser.sh(
        '"$2" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run '
        .. '--user-data-dir="$1/browser" --enable-logging=stderr --virtual-time-budget=5000 '
        .. '--allow-file-access-from-files --window-size=1200,900 '
        .. '--dump-dom "file://$1/' .. name .. '"', 120)
    equal(status, 0, "exit status of the browser: " .. errors)
    for line in errors:gmatch("[^\n]*CONSOLE[^\n]*") do
        error("logged by the page: " .. line, 2)
    end
    return document
end

-- Load a copy of a page with `then_do`, JavaScript, at its end; `then_do` stores results as attributes of `found`.
-- Returns the document.
function browser.open(name, then_do)
    browser.write("opened.html", (browser.read(name):gsub("</body>", function()
        return "<script>(found => { " .. (then_do or "") ..
               " })(document.body.dataset)</script>\n</body>"
    end)))
    return browser.browse("opened.html")
end

function browser.found(document, name)
    local body = document:match("<body[^>]*>")
    return body and body:match("data%-" .. name .. '="([^"]*)"')
end

-- How wide the page is in a window of `pixels` pixels, and how many pixels of its widest table are out of sight. The
-- page is in a frame, because a browser's window has at least 500 pixels.
function browser.width(name, pixels, tables)
    browser.write("framed.html", ([[<!DOCTYPE html><body>
        <iframe src="%s" style="width: %dpx; height: 800px; border: 0"></iframe>
        <script>document.querySelector("iframe").addEventListener("load", event => {
            const page = event.target.contentDocument;
            document.body.dataset.drawn = page.body.dataset.drawn;
            document.body.dataset.wide = page.documentElement.scrollWidth;
            document.body.dataset.unseen = Math.max(0, ...Array.from(
                page.querySelectorAll("%s"), table => table.scrollWidth - table.clientWidth));
        });</script>]]):format(name, pixels, tables or ".scroll"))
    local document = browser.browse("framed.html")
    check(browser.found(document, "drawn"), "not drawn: " .. name)
    return tonumber(browser.found(document, "wide")), tonumber(browser.found(document, "unseen"))
end

return browser
