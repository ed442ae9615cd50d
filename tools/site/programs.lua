-- SPDX-License-Identifier: MIT
--
-- The pages of the manual as HTML, by mandoc, and their options for the index of the search.

local html = require "html"

local programs = {}

function programs.read(path)
    local out <close> = assert(io.popen(("mandoc -T html -O fragment '%s'"):format(path)))
    local body = out:read("a")
    local name, title = body:match '<code class="Nm">(.-)</code>', body:match '<span class="Nd">(.-)</span>'
    assert(name, path .. ": mandoc gives no name of a program")
    body = body:gsub('<table class="head">.-</table>\n', ""):gsub('<table class="foot">.-</table>\n', "")
    body = body:gsub("<(/?)h2", "<%1h3"):gsub("<(/?)h1", "<%1h2")
    body = body:gsub('<table class="Nm">.-</table>', '<div class="scroll">%0</div>')
    local entries = {}
    for id, option, rest in body:gmatch '<dt id="([^"]+)"><a class="permalink" href="#[^"]+"><code class="Fl">(.-)</code></a>(.-)</dt>' do
        local text = body:match('<dt id="' .. id:gsub("%p", "%%%0") .. '">.-<dd[^>]*>(.-)</dd>') or ""
        local long = rest:match '<code class="Fl">(%-%-.-)</code>'
        entries[#entries + 1] = {name .. " " .. html.unescape(option) .. (long and ", " .. html.unescape(long) or ""), "option", id,
            html.first_sentence(text)}
    end
    assert(#entries > 5 or path:find "mpi", path .. ": mandoc marks no options")
    return {title = name, body = ("<h1>%s</h1>\n<p>%s</p>\n%s"):format(name, (title:gsub("%s+", " ")), body), entries = entries}
end

return programs
