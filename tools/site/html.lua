-- SPDX-License-Identifier: MIT
--
-- Text as HTML, and the page of a body: its head, menu and search.

local html = {}

local entities = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;"}

function html.escape(text)
    return (text:gsub('[&<>"]', entities))
end

function html.unescape(text)
    text = text:gsub("&#x(%x+);", function(code) return utf8.char(tonumber(code, 16)) end)
    return (text:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&quot;", '"'):gsub("&amp;", "&"))
end

function html.text_of(markup)
    return html.unescape((markup:gsub("<[^>]*>", "")))
end

-- The first sentence of some HTML, without tags and the full stop, as HTML. The next one begins with a capital letter, a
-- quotation or a name such as sxe_listen.
function html.first_sentence(markup)
    local text = html.text_of(markup):gsub("\u{A0}", " "):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
    for at in text:gmatch "()%. " do
        if text:find('^[%u`"]', at + 2) or text:find("^%l+[_.-]%l", at + 2) then
            return html.escape(text:sub(1, at - 1))
        end
    end
    return (html.escape(text):gsub("([^.])%.$", "%1"))
end

-- The id of a heading, as GitHub makes it, so that links in docs/*.md work here and there. `taken` counts those of a page.
function html.slug(text, taken)
    local slug = text:lower():gsub("[^%w%s_\x80-\xff-]", ""):gsub("%s", "-")
    local number = taken[slug]
    taken[slug] = (number or 0) + 1
    return number and slug .. "-" .. number or slug
end

-- "../" for each folder of the path, so that the site works wherever it lies.
function html.root_of(path)
    return (path:gsub("[^/]*/", "../"):gsub("[^/]*$", ""))
end

-- A title in the menu ends at its colon, unless two pages would have the same one: "Tutorial: a chat in C".
local function short_titles(group)
    local count = {}
    for _, page in ipairs(group) do
        local short = page.title:gsub(":.*", "")
        count[short] = (count[short] or 0) + 1
    end
    return function(page)
        local short = page.title:gsub(":.*", "")
        return page.menu or count[short] > 1 and page.title or short
    end
end

local function menu(groups, page, root)
    local out = {}
    for _, group in ipairs(groups) do
        local title_of = short_titles(group)
        out[#out + 1] = ("<h2>%s</h2>\n<ul>"):format(group.title)
        for _, other in ipairs(group) do
            out[#out + 1] = ('<li><a href="%s%s"%s>%s</a></li>'):format(root, other.path,
                other == page and ' aria-current="page"' or "", html.escape(title_of(other)))
        end
        out[#out + 1] = "</ul>"
    end
    return table.concat(out, "\n")
end

local template = [[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>@TITLE@</title>
<link rel="stylesheet" href="@ROOT@style.css">
</head>
<body data-root="@ROOT@">
<a class="skip" href="#main">Skip to the text</a>
<header>
<a class="home" href="@ROOT@index.html">libsxe <small>@VERSION@</small></a>
<form role="search" action="@ROOT@search.html">
<input type="search" name="q" placeholder="Search functions, options, pages" aria-label="Search" autocomplete="off" spellcheck="false">
<ul class="results" hidden></ul>
</form>
<label class="menu" for="menu">Menu</label>
</header>
<div class="frame">
<input type="checkbox" id="menu" aria-label="Show the menu">
<nav aria-label="Pages">
@MENU@
</nav>
<main id="main">
@BODY@
</main>
</div>
<script src="@ROOT@search.js" defer></script>
</body>
</html>
]]

function html.page(page, groups, version)
    local root = html.root_of(page.path)
    local title = page.title == "libsxe" and "libsxe" or page.title .. " - libsxe"
    local values = {ROOT = root, TITLE = html.escape(title), VERSION = version, MENU = menu(groups, page, root), BODY = page.body}
    return (template:gsub("@(%u+)@", values))
end

return html
