-- SPDX-License-Identifier: MIT
--
-- A browser that a test controls by the DevTools protocol: it loads pages, runs JavaScript in them, presses keys.
-- Messages go through two named pipes, each message with a zero byte after it (--remote-debugging-pipe).

local browser = require "browser"

local devtools = {}
devtools.__index = devtools

local function quote(text)
    return '"' .. text:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function unquote(text)
    return (text:gsub("\\u(%x%x%x%x)", function(hex) return utf8.char(tonumber(hex, 16)) end)
                :gsub("\\(.)", {n = "\n", t = "\t", r = "\r", ['"'] = '"', ["\\"] = "\\", ["/"] = "/"}))
end

function devtools.start()
    browser.start()
    equal(browser.sh('mkfifo "$1/in" "$1/out"'), 0)
    local self = setmetatable({number = 0, logged = {}}, devtools)
    self.proc = wire.spawn{"sh", "-c", 'exec chromium --headless=new --no-sandbox --disable-gpu '
        .. '--disable-dev-shm-usage --no-first-run --user-data-dir="$1/browser" '
        .. '--remote-debugging-pipe about:blank 3<"$1/in" 4>"$1/out"', "sh", browser.path(""):sub(1, -2)}
    self.to = assert(io.open(browser.path("in"), "r+"))
    self.from = assert(io.open(browser.path("out"), "rb"))
    local target = self:call("Target.createTarget", '{"url":"about:blank"}'):match('"targetId":"(%w+)"')
    self.session = self:call("Target.attachToTarget", ('{"targetId":"%s","flatten":true}'):format(target))
                       :match('"sessionId":"(%w+)"')
    self:call("Page.enable")
    self:call("Runtime.enable")
    self:call("Log.enable")
    return self
end

function devtools:__close()
    self.to:close()
    self.from:close()
    self.proc:signal("TERM")
    self.proc:wait(60)
    browser.finish()
end

function devtools:read()
    local bytes = {}
    while true do
        local byte = self.from:read(1)
        if not byte then
            error("the browser has ended: " .. self.proc:errors(), 2)
        elseif byte == "\0" then
            return table.concat(bytes)
        end
        bytes[#bytes + 1] = byte
    end
end

-- Call a method of the protocol and return the reply. Lines that the page logs in the meantime are added to `logged`.
function devtools:call(method, parameters)
    self.number = self.number + 1
    self.to:write(('{"id":%d,%s"method":"%s","params":%s}\0'):format(self.number,
        self.session and ('"sessionId":"%s",'):format(self.session) or "", method, parameters or "{}"))
    self.to:flush()
    while true do
        local message = self:read()
        if tonumber(message:match('^{"id":(%d+)')) == self.number then
            check(not message:find('^{"id":%d+,"error"'), message)
            return message
        elseif message:find('"method":"Log.entryAdded"', 1, true) or
               message:find('"method":"Runtime.exceptionThrown"', 1, true) then
            self.logged[#self.logged + 1] = message
        end
    end
end

-- Load a page; the next call of evaluate waits until the page has loaded.
function devtools:open(url)
    self:call("Page.navigate", ('{"url":%s}'):format(quote(url)))
end

-- The value of an expression, as a string.
function devtools:evaluate(expression)
    local reply = self:call("Runtime.evaluate", ('{"returnByValue":true,"expression":%s}'):format(
        quote("String(" .. expression .. ")")))
    return unquote(reply:match('"type":"string","value":"(.-)"}') or error(reply, 2))
end

-- Press a key with this name and code. The key types `text`, or nothing if `text` is nil.
function devtools:press(key, code, text)
    local names = ('"key":"%s","code":"%s","windowsVirtualKeyCode":%d'):format(key, key, code)
    self:call("Input.dispatchKeyEvent", ('{"type":"%s",%s%s}'):format(text and "keyDown" or "rawKeyDown", names,
        text and ',"text":' .. quote(text) or ""))
    self:call("Input.dispatchKeyEvent", ('{"type":"keyUp",%s}'):format(names))
end

return devtools
