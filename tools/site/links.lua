-- SPDX-License-Identifier: MIT
--
-- Links of the site: those of the repository lead to pages here, names of functions to the reference, and none is dead.

local html = require "html"

local links = {}

-- "docs/../lib-sxe/sxe.h" is "lib-sxe/sxe.h".
function links.normal(path)
    local parts = {}
    for part in path:gmatch "[^/]+" do
        if part == ".." then
            parts[#parts] = nil
        elseif part ~= "." then
            parts[#parts + 1] = part
        end
    end
    return table.concat(parts, "/")
end

function links.folder_of(path)
    return path:match "^(.*/)" or ""
end

-- Rewrite the links of a page that was made of a file of the repository. `target_of` returns the path in the site of a path
-- in the repository, or nil.
function links.resolve(page, target_of)
    local root = html.root_of(page.path)
    page.body = page.body:gsub('href="([^"]*)"', function(href)
        if href:find "^%a[%a+.-]*:" and not href:find "^source:" or href:find "^#" then
            return nil
        end
        local path, fragment = href:match "^([^#]*)(.*)$"
        local is_source = path:find "^source:"
        path = is_source and path:sub(8) or links.normal(links.folder_of(page.source) .. path)
        local target, anchor = target_of(path, is_source)
        if not target then
            return ('href="dead:%s"'):format(path)
        end
        return ('href="%s%s%s"'):format(root, target, fragment ~= "" and fragment or anchor or "")
    end)
end

-- Walk over the text of a page that is outside of links, examples and headings; `change(text, is_code)` returns its HTML.
local function each_text(body, change)
    local out, depth, is_code, from = {}, 0, false, 1
    local closed = {a = true, pre = true, h1 = true, h2 = true, h3 = true, h4 = true, summary = true, title = true}
    for at, slash, tag, after in body:gmatch "()<(/?)(%w+)[^>]*>()" do
        local text = body:sub(from, at - 1)
        out[#out + 1] = depth == 0 and text ~= "" and change(text, is_code) or text
        out[#out + 1] = body:sub(at, after - 1)
        from = after
        if closed[tag] then
            depth = depth + (slash == "" and 1 or -1)
        elseif tag == "code" then
            is_code = slash == ""
        end
    end
    out[#out + 1] = body:sub(from)
    return table.concat(out)
end

-- Link the names of public functions, types and modules: all words of the reference, and code elsewhere.
function links.name(page, names)
    local root, here = html.root_of(page.path), page.path .. "#"
    page.body = each_text(page.body, function(text, is_code)
        local name = is_code and names[html.unescape(text)]
        if name == page.path then
            return text
        elseif name then
            return ('<a href="%s%s">%s</a>'):format(root, name, text)
        end
        if not is_code and not page.is_reference then
            return text
        end
        return (text:gsub("sxe_[%w_]+", function(word)
            local target = names[word]
            return target and ('<a href="%s">%s</a>'):format(
                target:sub(1, #here) == here and target:sub(#here) or root .. target, word) or nil
        end))
    end)
end

-- Print what is wrong with the pages: dead links, ids that two elements have, anything loaded from elsewhere. The number of
-- faults.
function links.check(pages, assets)
    local ids, faults = {}, 0
    local function fault(page, ...)
        faults = faults + 1
        io.stderr:write(page.path, ": ", table.concat{...}, "\n")
    end
    for _, page in ipairs(pages) do
        ids[page.path] = {[""] = true}
        for id in page.html:gmatch ' id="([^"]+)"' do
            if ids[page.path][html.unescape(id)] then
                fault(page, "two elements have the id ", id)
            end
            ids[page.path][html.unescape(id)] = true
        end
    end
    for _, page in ipairs(pages) do
        for attribute, href in page.html:gmatch '(%w+)="([^"]*)"' do
            if attribute == "src" or attribute == "href" and not href:find "^https?://" and not href:find "^mailto:" then
                local path, fragment = html.unescape(href):match "^([^#]*)#?(.*)$"
                local target = path == "" and page.path or links.normal(links.folder_of(page.path) .. path)
                if href:find "^%a[%a+.-]*:" or href:find "^//" then
                    fault(page, "a dead link, or one that needs a network: ", href)
                elseif not ids[target] and not assets[target] then
                    fault(page, "no page for the link ", href)
                elseif ids[target] and not ids[target][fragment] then
                    fault(page, "no place for the link ", href)
                end
            end
        end
    end
    return faults
end

return links
