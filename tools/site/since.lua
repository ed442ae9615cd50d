-- SPDX-License-Identifier: MIT
--
-- usage: sxe-lua tools/site/since.lua      prints, sorted, the entries of the reference that tools/since-entries.txt lists
--
-- The version with which each Lua call, option and metric came. tools/symbols.sh keeps the list.

package.path = "tools/site/?.lua;" .. package.path

local calls = require "lua-calls"
local metrics = require "metrics"
local programs = require "programs"

local LISTED <const> = {["Lua call"] = true, ["Lua value"] = true, option = true, metric = true}

local since = {}

-- The name of an entry in the list: the name of its page, and its place there; nil if the list does not have its kind.
local function name_of(page, entry)
    return LISTED[entry[2]] and page .. "#" .. entry[3] or nil
end

-- The bodies of pages get the versions: at the end of the element that has the entry's id.
function since.mark(page, body, entries, versions)
    for _, entry in ipairs(entries) do
        local version = versions[name_of(page, entry) or false]
        if version then
            local from, past, tag = body:find('<(%w+) id="' .. entry[3]:gsub("%p", "%%%0") .. '"')
            local at = assert(from and body:find(tag == "tr" and "</td></tr>" or "</" .. tag .. ">", past, true), entry[1])
            body = ('%s <span class="about">since %s</span>%s'):format(body:sub(1, at - 1), version, body:sub(at))
        end
    end
    return body
end

function since.read()
    local versions = {}
    for line in io.lines "tools/since-entries.txt" do
        local name, version = line:match "^(%S+) (%S+)$"
        versions[assert(name, line)] = version
    end
    return versions
end

-- All entries that the list has to have.
function since.names()
    local names = {}
    local function add(page, entries)
        for _, entry in ipairs(entries) do
            names[#names + 1] = name_of(page, entry)
        end
    end
    add("metrics", select(2, metrics.page()))
    local list <close> = assert(io.popen "ls lib-sxe-lua/types/*.lua lib-sxe-lua/types/sxe/*.lua docs/*.1")
    for path in list:lines() do
        local page = (path:find "%.1$" and programs or calls).read(path)
        add(page.title or page.name, page.entries)
    end
    table.sort(names)
    return names
end

if ... == "since" then
    return since
end
print(table.concat(since.names(), "\n"))
