-- SPDX-License-Identifier: MIT
--
-- The calls of scripts, from the definitions for editors in lib-sxe-lua/types: a page for each module.

local html = require "html"

local calls = {}

-- What the lines above a definition say: its text, parameters, results and fields.
local function fresh()
    return {text = {}, params = {}, returns = {}, fields = {}, others = {}}
end

-- "name? type text": a type may have blanks inside brackets and after a bar or a colon.
local function typed(rest)
    local at, depth = 1, 0
    while at <= #rest do
        local character = rest:sub(at, at)
        if character == " " and depth == 0 and not rest:sub(1, at - 1):find "[|:,]$" and not rest:find("^ [|:]", at) then
            break
        end
        depth = depth + (character:find "[%(<{%[]" and 1 or character:find "[%)>}%]]" and -1 or 0)
        at = at + 1
    end
    return rest:sub(1, at - 1), rest:sub(at + 1)
end

local function note(doc, tag, rest)
    if tag == "param" or tag == "field" then
        local name, more = rest:match "^(%b[]%??)%s+(.*)"
        if not name then
            name, more = rest:match "^(%S+)%s*(.*)"
        end
        local kind, text = typed(more)
        local list = tag == "param" and doc.params or doc.fields
        list[#list + 1] = {name = name, type = kind, text = text}
    elseif tag == "return" then
        doc.returns[#doc.returns + 1] = rest
    elseif tag == "class" or tag == "alias" then
        doc[tag] = rest
    elseif tag ~= "meta" then
        doc.others[#doc.others + 1] = tag .. " " .. rest
    end
end

local function rows(list, title)
    if #list == 0 then
        return ""
    end
    local out = {('<div class="scroll"><table class="list">\n<tr><th>%s</th><th>type</th><th></th></tr>'):format(title)}
    for _, one in ipairs(list) do
        out[#out + 1] = ("<tr><td><code>%s</code></td><td><code>%s</code></td><td>%s</td></tr>"):format(html.escape(one.name),
            html.escape(one.type), html.escape(one.text))
    end
    return table.concat(out, "\n") .. "\n</table></div>\n"
end

local function text_of(doc)
    return (html.escape(table.concat(doc.text, "\n")):gsub("`([^`]+)`", "<code>%1</code>"))
end

local function body_of(doc)
    local out = {}
    if #doc.text > 0 then
        out[#out + 1] = "<p>" .. text_of(doc) .. "</p>\n"
    end
    out[#out + 1] = rows(doc.params, "parameter") .. rows(doc.fields, "field")
    for _, text in ipairs(doc.returns) do
        out[#out + 1] = "<p>Returns <code>" .. html.escape(text) .. "</code></p>\n"
    end
    for _, text in ipairs(doc.others) do
        out[#out + 1] = "<p><code>" .. html.escape(text) .. "</code></p>\n"
    end
    return table.concat(out)
end

-- Read one file: the module's name, the HTML of its page, and what the index has of it.
function calls.read(path)
    local module = {name = "", text = "", out = {}, entries = {}}
    local doc, taken = fresh(), {}
    local function add(name, heading, kind)
        local id = name:gsub("[^%w_.:-]", "-")
        taken[id] = (taken[id] or 0) + 1
        id = taken[id] == 1 and id or id .. "-" .. taken[id]
        module.out[#module.out + 1] = ('<section class="entry"><h4 id="%s"><code>%s</code></h4>\n%s</section>'):format(id, html.escape(heading),
            body_of(doc))
        module.entries[#module.entries + 1] = {name, kind, id, html.first_sentence(text_of(doc))}
        doc = fresh()
    end
    local function finish() -- a class or an alias that no table of Lua follows
        if doc.class and doc.class == module.name then
            module.text = html.first_sentence(text_of(doc))
        end
        if doc.class and doc.class == module.name and body_of(doc) == "" then
            doc = fresh()
        elseif doc.class then
            add(doc.class:match "^[^:]+", doc.class, "Lua class")
        elseif doc.alias then
            add(doc.alias:match "^%S+", doc.alias, "Lua type")
        end
    end
    for line in io.lines(path) do
        local tag, rest = line:match "^%-%-%-@(%a+)%s*(.*)"
        local name, list = line:gsub("^local function", "function"):match "^function ([%w_.:]+)(%b())" -- spawn{...} is local
        if tag == "meta" then
            module.name = rest
        elseif tag then
            if (tag == "class" or tag == "alias") and (doc.class or doc.alias) then
                finish()
            end
            note(doc, tag, rest)
        elseif line:find "^%-%-%-" then
            if doc.class or doc.alias then
                finish()
            end
            doc.text[#doc.text + 1] = line:sub(4)
        elseif name then
            add(name, name .. list, "Lua call")
        elseif line:find "^local [%w_]+ = " or line == "" then
            finish()
            doc = line == "" and fresh() or doc
        elseif line:match "^([%w_.]+) = " and #doc.text > 0 then
            add(line:match "^([%w_.]+) = ", line:match "^([%w_.]+) = ", "Lua value")
        end
    end
    finish()
    for _, entry in ipairs(module.entries) do
        if module.name == "sxe." .. entry[1] then -- the module is this function
            module.text = entry[4]
        end
    end
    return module
end

return calls
