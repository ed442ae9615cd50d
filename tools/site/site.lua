-- SPDX-License-Identifier: MIT
--
-- usage: sxe-lua tools/site/site.lua DIR      writes the site of the documentation to DIR, as make site calls it
--
-- Pages come from README.md and docs, the reference from public headers, the definitions of the Lua calls, the pages of the
-- manual and the sources of metrics. All is found in the tree: no list of files is here. Needs cmark-gfm, mandoc and awk.

package.path = "tools/site/?.lua;" .. package.path

local calls = require "lua-calls"
local html = require "html"
local links = require "links"
local markdown = require "markdown"
local metrics = require "metrics"
local programs = require "programs"
local since = require "since"

local dir = assert(arg[1], "usage: site.lua DIR")
local pages, by_source, names, index = {}, {}, {}, {}
local assets = {["style.css"] = true, ["search.js"] = true, ["search-index.js"] = true}

local function lines_of(command)
    local found = {}
    local out <close> = assert(io.popen(command))
    for line in out:lines() do
        found[#found + 1] = line
    end
    return found
end

local function read(path)
    local file <close> = assert(io.open(path, "rb"))
    return file:read("a")
end

local function write(path, text)
    local file <close> = assert(io.open(dir .. "/" .. path, "wb"))
    assert(file:write(text))
end

local function add(page)
    pages[#pages + 1] = page
    by_source[page.source] = by_source[page.source] or page
    return page
end

local function note(name, kind, path, anchor, text)
    index[#index + 1] = {name, kind, path .. (anchor and "#" .. anchor or ""), text or ""}
end

-- ---- Pages of text: README.md, then docs in the order in which it links them, then the other pages beside README.md ----

local function add_text(source, path)
    local page = markdown.read(source)
    page.source, page.path = source, path
    note(page.title, "page", path, nil, html.first_sentence(page.body:match "<p>(.-)</p>" or ""))
    for _, heading in ipairs(page.headings) do
        if heading.level > 1 then
            note(html.text_of(heading.inner), "section", path, heading.id, page.title)
        end
    end
    return add(page)
end

local function text_pages()
    local guide, project, seen = {title = "Guide"}, {title = "Project"}, {}
    guide[1] = add_text("README.md", "index.html")
    local linked = {}
    for name in read("README.md"):match("\n## The folders.*"):gmatch "%(docs/([%w-]+)%.md%)" do
        linked[#linked + 1] = "docs/" .. name .. ".md"
    end
    for _, list in ipairs{linked, lines_of "ls docs/*.md"} do
        for _, source in ipairs(list) do
            if not seen[source] then
                seen[source] = true
                guide[#guide + 1] = add_text(source, (source:gsub("%.md$", ".html")))
            end
        end
    end
    for _, source in ipairs(lines_of "ls *.md") do
        if source ~= "README.md" then
            project[#project + 1] = add_text(source, source:lower():gsub("%.md$", ".html"))
        end
    end
    return guide, project
end

-- ---- The reference ----

-- The header that has the name of its library is the first of its page.
local function rank_of_header(path)
    local library, name = path:match "^lib%-(.-)/(.*)%.h$"
    return ("%s/%s%s"):format(library, library == name and "" or "~", name)
end

local function library_pages()
    local group = {title = "C libraries"}
    local work = dir .. "/work"
    os.execute(("rm -rf '%s' && mkdir '%s'"):format(work, work))
    local headers = lines_of "ls lib-*/*.h | grep -vE -- '-(private|internal)\\.h$'"
    table.sort(headers, function(a, b) return rank_of_header(a) < rank_of_header(b) end)
    assert(os.execute(("awk -v dir='%s' -f tools/reference.awk -f tools/reference-html.awk %s"):format(work, table.concat(headers, " "))))
    local read_me = read("README.md")
    local libraries, headers_of = {}, {}
    for line in io.lines(work .. "/index.tsv") do
        local kind, name, library, anchor, text = line:match "^(.-)\t(.-)\t(.-)\t(.-)\t(.*)$"
        if kind == "header" then
            headers_of[library] = (headers_of[library] or "") .. ('<li><a href="#%s"><code>%s</code></a>: %s</li>\n'):format(anchor, name,
                html.escape(text))
        end
    end
    for line in io.lines(work .. "/index.tsv") do
        local kind, name, library, anchor, text = line:match "^(.-)\t(.-)\t(.-)\t(.-)\t(.*)$"
        local path = "reference/" .. library .. ".html"
        if not libraries[library] then
            libraries[library] = read_me:find("(" .. library .. "/", 1, true) or math.maxinteger
            local body = ('<h1>%s</h1>\n<p>The public headers of <code>%s</code>: their functions and types.</p>\n<ul>\n%s</ul>\n%s')
                :format(library, library, headers_of[library], read(work .. "/" .. library .. ".html"))
            group[#group + 1] = add{title = library .. ": reference", menu = library, path = path, source = library,
                is_reference = true, body = body}
        end
        names[name:gsub("^%a+ ", "")] = path .. "#" .. anchor
        names[name] = path .. "#" .. anchor
        names[kind == "function" and name .. "()" or name] = path .. "#" .. anchor
        if kind == "header" then
            by_source[library .. "/" .. name] = {path = path, anchor = "#" .. anchor}
        end
        note(name, kind, path, anchor, text)
    end
    os.execute(("rm -r '%s'"):format(work))
    table.sort(group, function(a, b) return libraries[a.source] < libraries[b.source] end)
    return group
end

local versions = since.read()

-- Put the entries of a page into the index, and the version of each into the page; `name` is the page in the list of versions.
local function note_all(page, entries, name)
    page.body = since.mark(name, page.body, entries, versions)
    for _, entry in ipairs(entries) do
        note(entry[1], entry[2], page.path, entry[3], entry[4])
    end
    return page
end

local function program_pages()
    local group = {title = "Programs"}
    for _, source in ipairs(lines_of "ls docs/*.1") do
        local program = programs.read(source)
        group[#group + 1] = note_all(add{title = program.title, path = ("reference/%s.html"):format(program.title), source = source,
            body = program.body}, program.entries, program.title)
    end
    local body, entries = metrics.page()
    group[#group + 1] = note_all(add{title = "Metrics", path = "reference/metrics.html", source = "docs/metrics", body = body}, entries, "metrics")
    return group
end

local function module_pages()
    local group = {title = "Lua modules"}
    for _, source in ipairs(lines_of "ls lib-sxe-lua/types/*.lua lib-sxe-lua/types/sxe/*.lua") do
        local module = calls.read(source)
        local path = ("reference/lua-%s.html"):format(module.name:gsub("^sxe%.", ""))
        local page = add{title = module.name, path = path, source = source, body = ('<h1>%s</h1>\n<p><code>require "%s"</code></p>\n%s')
            :format(module.name, module.name, table.concat(module.out, "\n"))}
        names[module.name] = path
        names[('require "%s"'):format(module.name)] = path
        group[#group + 1] = note_all(page, module.entries, module.name)
        note(module.name, "Lua module", path, nil, module.text)
        for _, entry in ipairs(module.entries) do
            if entry[2] == "Lua class" or entry[2] == "Lua type" then
                names[entry[1]] = names[entry[1]] or path .. "#" .. entry[3]
            end
        end
    end
    return group
end

-- ---- Files and folders that pages link to ----

local function is_folder(path)
    return os.execute(("test -d './%s'"):format(path)) == true
end

local function add_file(path)
    local page = {title = path, source = "source:" .. path, path = "source/" .. path .. ".html"}
    if path:find "%.md$" then
        page = markdown.read(path)
        page.source, page.path = path, "source/" .. path .. ".html"
    else
        page.body = ('<h1><code>%s</code></h1>\n<pre class="source"><code>%s</code></pre>'):format(path, html.escape(read(path)))
    end
    return add(page)
end

local function add_folder(path)
    local page = add{title = path .. "/", source = path .. "/", path = "source/" .. path .. "/index.html"}
    by_source[path] = page
    local out = {('<h1><code>%s/</code></h1>\n<ul>'):format(path)}
    for _, name in ipairs(lines_of(("LC_ALL=C ls -p './%s'"):format(path))) do
        out[#out + 1] = name:find "/$" and ("<li><code>%s</code></li>"):format(name)
            or ('<li><a href="source:%s/%s"><code>%s</code></a></li>'):format(path, name, name)
    end
    page.body = table.concat(out, "\n") .. "\n</ul>"
    return page
end

local function target_of(path, is_source)
    local page = by_source[is_source and "source:" .. path or path]
    if not page and is_folder(path) then
        page = add_folder(path)
    elseif not page then
        local file = path ~= "" and io.open(path)
        page = file and add_file(path)
        if file then
            file:close()
        end
    end
    if page then
        return page.path, page.anchor
    end
end

-- ---- The whole ----

local function json(text)
    return '"' .. text:gsub('[\\"]', "\\%0"):gsub("%c", " "):gsub("</", "<\\/") .. '"'
end

local function write_index()
    local out = {}
    for _, entry in ipairs(index) do
        out[#out + 1] = ("[%s,%s,%s,%s]"):format(json(html.text_of(entry[1])), json(entry[2]), json(entry[3]), json(html.text_of(entry[4])))
    end
    write("search-index.js", "window.sxe_index = [\n" .. table.concat(out, ",\n") .. "\n];\n")
end

os.execute(("rm -rf '%s' && mkdir -p '%s'"):format(dir, dir))
local version = read("lib-sxe-log/sxe-util.h"):match '#define SXE_VERSION%s+"(.-)"'
local guide, project = text_pages()
local groups = {guide, library_pages(), module_pages(), program_pages(), project}
add{title = "Search", path = "search.html", source = "search.html", body = '<h1>Search</h1>\n<p id="said">Type into the field above.</p>\n'
    .. '<noscript><p>Searching needs JavaScript. The menu lists all pages.</p></noscript>\n<ul class="found" id="found"></ul>'}
local done = 0
while done < #pages do -- pages that links need are added meanwhile
    done = done + 1
    links.resolve(pages[done], target_of)
    links.name(pages[done], names)
end
local folders = {}
for _, page in ipairs(pages) do
    page.html = html.page(page, groups, version)
    local folder = links.folder_of(page.path)
    if not folders[folder] then
        folders[folder] = os.execute(("mkdir -p '%s/%s'"):format(dir, folder))
    end
    write(page.path, page.html)
end
write_index()
write("style.css", read("tools/site/style.css"))
write("search.js", read("tools/site/search.js"))
local faults = links.check(pages, assets)
if faults > 0 then
    io.stderr:write(("site: %d faults\n"):format(faults))
    os.exit(1)
end
print(("site: %d pages, %d entries of the search; open %s/index.html"):format(#pages, #index, dir))
