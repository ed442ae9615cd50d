-- SPDX-License-Identifier: MIT
--
-- A script of sxe-lua: hostile-calls.lua GOOD PORT... calls the hostile server at each port, and all the time the good
-- one. It prints what each call came to, then "good OK FAILED", "descriptors BEFORE AFTER" and "pages BEFORE AFTER".

local client = require "sxe.client"
local task = require "sxe.task"

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read "a"
end

local function descriptors()
    local count = 0
    for number = 0, 511 do
        local file = io.open("/proc/self/fdinfo/" .. number)
        if file then
            count = count + 1
            file:close()
        end
    end
    return count
end

local function call(port, timeout)
    return client.get(("https://127.0.0.1:%d/"):format(port), {timeout = timeout, tls = {insecure = true}})
end

local ports <const> = {table.unpack(arg, 2)}
local ok, failed, is_over = 0, 0, false

task.start(function()
    while not is_over do
        local response, why = client.get(("https://127.0.0.1:%d/"):format(arg[1]),
            {timeout = 120, headers = {Connection = ok % 2 == 0 and "close" or nil}, tls = {insecure = true}})
        if response and response.body == "Hello, World!\n" then
            ok = ok + 1
        else
            failed = failed + 1
            print("good: " .. tostring(why))
        end
        task.sleep(0.01)
    end
end)

local function attack_all(does_print)
    local running = {}
    for _, port in ipairs(ports) do
        running[#running + 1] = task.start(function()
            local response, why = call(port, 10)
            if does_print then
                print(port, response and response.status or why)
            end
        end)
    end
    for _, one in ipairs(running) do one:join() end
end

local function pages()
    collectgarbage()
    return tonumber(read("/proc/self/statm"):match "%d+ (%d+)")
end

attack_all(true)
local before, pages_before = descriptors(), pages()
for _ = 1, 4 do attack_all(false) end
is_over = true
print("good", ok, failed)
print("descriptors", before, descriptors())
print("pages", pages_before, pages())
