-- SPDX-License-Identifier: MIT
-- Rows about scripts: the same server with a handler in C and in Lua, beside nginx with LuaJIT, Go
-- and Node; the examples beside their twins in Node.

local examples = require "examples"
local peers = require "peers"

local VOID = "a reply with another status or body; 0.08 of a CPU taken by others"

local function is_user(reply)
    local members = peers.services.json.fields
    for _, member in ipairs(members) do
        if not reply.body:find(member, 1, true) then
            return nil, "the body is " .. reply.body
        end
    end
    return true
end

local function row(name, service, title, who, load, more)
    local result = {
        name = "lua-" .. name, service = service, peers = who, unit = "replies/s", title = title,
        reference = "sxe-c", ours = "sxe-lua", void = VOID, budget = 35,
        work = "a server of lib-sxe-http asks a handler in C, or the same handler in Lua",
        command = "lua-twins PORT hello; lua-twins PORT bench/lua/hello.lua",
        checks = "length of each reply, status and body once a sample", load = load}
    load.connections, load.client = 64, load.client or "limit-client"
    for field, value in pairs(more or {}) do
        result[field] = value
    end
    return result
end

local hello, json, echo = peers.services.hello, peers.services.json, peers.services.echo
local WITH_SCRIPTS = {"sxe-c", "sxe-lua", "nginx-lua", "go", "node"}

local list = {
    row("2010", "2010", "The five lines of 2010, 64 connections", {"sxe-c", "sxe-lua"},
        {target = "/", body = peers.services["2010"].body},
        {target = {peer = "sxe-c", ratio = 0.95, of = "issue 5"}, budget = 20}),
    row("hello", "hello", "A handler that returns a string, 64 connections", WITH_SCRIPTS,
        {target = "/", body = hello.body},
        {target = {{peer = "sxe-c", ratio = 0.90, of = "issue 5"},
                   {peer = "nginx-lua", ratio = 1.4, of = "issue 5"},
                   {peer = "node", ratio = 4, of = "issue 5"}}}),
    row("json", "json", "A route with a parameter, three header fields, JSON, 64 connections",
        WITH_SCRIPTS, {target = json.target, body = is_user},
        {target = {peer = "sxe-c", ratio = 0.65, of = "issue 5"}}),
    row("pipeline", "hello", "A handler that returns a string, 16 requests at a time",
        {"sxe-c", "sxe-lua", "nginx-lua", "node"}, {target = "/", body = hello.body, depth = 16},
        {target = {peer = "sxe-c", ratio = 0.45, of = "issue 5"}, budget = 25}),
    row("echo", "echo", "A handler that returns the request's body of 100,000 bytes, 64 connections",
        {"sxe-lua", "nginx-lua", "go", "node"},
        {target = echo.target, post = echo.post, body = echo.body, client = "sxe-http", second = false},
        {reference = "nginx-lua", work = "a handler in Lua is given the whole body and returns it",
         command = "lua-twins PORT bench/lua/echo.lua; sxe-http -c 64 -b @FILE URL",
         checks = "status and length of each reply, and once a sample its bytes", budget = 25,
         target = {peer = "nginx-lua", ratio = 1.0, of = "issue 16"}}),
}

return table.move(examples.rows(), 1, #examples.rows(), #list + 1, list)
