-- SPDX-License-Identifier: MIT
--
-- Pages in Markdown as HTML, by cmark-gfm, with an id for each heading and a frame for each table.

local html = require "html"

local markdown = {}

local function converted(path)
    local out <close> = assert(io.popen(("cmark-gfm -e table -e strikethrough -e autolink '%s'"):format(path)))
    local text = out:read("a")
    assert(#text > 0, path .. ": cmark-gfm gives nothing")
    return text
end

-- The headings of a page: level, id, HTML. They get their ids here.
function markdown.with_ids(body)
    local taken, headings = {}, {}
    body = body:gsub("<h([1-6])>(.-)</h%1>", function(level, inner)
        local id = html.slug(html.text_of(inner), taken)
        headings[#headings + 1] = {level = tonumber(level), id = id, inner = inner}
        return ('<h%s id="%s">%s</h%s>'):format(level, id, inner, level)
    end)
    return body, headings
end

function markdown.contents(headings)
    local items = {}
    for _, heading in ipairs(headings) do
        if heading.level == 2 then
            items[#items + 1] = ('<li><a href="#%s">%s</a></li>'):format(heading.id, heading.inner:gsub("</?a[^>]*>", ""))
        end
    end
    if #items < 4 then
        return ""
    end
    return ("<details class=\"contents\"><summary>On this page</summary>\n<ul>\n%s\n</ul></details>\n"):format(table.concat(items, "\n"))
end

-- A table that is wider than the window scrolls in its own frame.
function markdown.with_frames(body)
    return (body:gsub("<table>", '<div class="scroll"><table>'):gsub("</table>", "</table></div>"))
end

-- Read a page: its title, its body and its headings.
function markdown.read(path)
    local body, headings = markdown.with_ids(converted(path):gsub("<!%-%-.-%-%->\n?", ""))
    local title = headings[1] and html.text_of(headings[1].inner) or path
    body = markdown.with_frames(body):gsub("</h1>\n", function(all) return all .. markdown.contents(headings) end, 1)
    return {title = title, body = body, headings = headings}
end

return markdown
