-- SPDX-License-Identifier: MIT
--
-- What: draws a flame graph, as an SVG, from stacks and how often each was seen. A frame is as wide
-- as the share of the time in which it was on the stack; the functions that it called stand on it.
-- Place: profile.lua gives it the output of perf script; tools/flame gives it lines of the same form, in
-- which calls of Lua are in the file [lua].

local flame = {}

local WIDTH, HEIGHT, MARGIN, TOP = 1200, 18, 10, 56
local NARROWEST = 0.5 -- pixels
local CHARACTER = 7.3 -- pixels

-- ---- Stacks ----

-- A node of the tree {name, kind, count, children, order}, which is made of the output of `perf
-- script -F comm,ip,sym,dso`.
local function node(name, kind)
    return {name = name, kind = kind, count = 0, children = {}, order = {}}
end

local function kind_of(dso)
    if dso:find("kernel", 1, true) or dso:find("vmlinux", 1, true) or dso:find("%.ko") then
        return "kernel"
    elseif dso:find("libc[.-]") or dso:find("vdso") then
        return "libc"
    elseif dso == "[lua]" then
        return "lua"
    elseif dso:find("build/", 1, true) or dso:find("/sxe-%l+$") or dso:find("/libsxe") then
        return "ours"
    end
    return "other"
end

local function add_stack(root, frames)
    local at = root
    at.count = at.count + 1
    for i = #frames, 1, -1 do
        local name = frames[i].name
        local child = at.children[name]
        if not child then
            child = node(name, frames[i].kind)
            at.children[name] = child
            at.order[#at.order + 1] = child
        end
        child.count = child.count + 1
        at = child
    end
end

function flame.parse(lines)
    local root, frames = node("all", "other"), {}
    for line in lines do
        local symbol, dso = line:match("^%s+%x+ (.-) %(([^()]*)%)$")
        if symbol then
            frames[#frames + 1] = {name = symbol:gsub("%+0x%x+$", ""), kind = kind_of(dso)}
        elseif line == "" and #frames > 0 then
            add_stack(root, frames)
            frames = {}
        end
    end
    if #frames > 0 then
        add_stack(root, frames)
    end
    return root
end

-- Return the shares of the time by the kind of the uppermost frame, and the functions that were
-- uppermost longest.
function flame.leaves(root, number)
    local kinds, names, order = {}, {}, {}
    local function visit(at)
        local own = at.count
        for _, child in ipairs(at.order) do
            own = own - child.count
            visit(child)
        end
        if own > 0 then
            kinds[at.kind] = (kinds[at.kind] or 0) + own / root.count
            if not names[at.name] then
                order[#order + 1] = at.name
            end
            names[at.name] = (names[at.name] or 0) + own / root.count
        end
    end
    visit(root)
    table.sort(order, function(a, b) return names[a] > names[b] end)
    local list = {}
    for i = 1, math.min(number, #order) do
        list[i] = {name = order[i], share = names[order[i]]}
    end
    return kinds, list
end

-- ---- The picture ----

local STYLE = [[
text { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; fill: #17202c; }
.title { font-size: 15px; font-weight: 600; }
rect { stroke: #fff; stroke-width: 0.6; }
.back { fill: #fff; stroke: none; }
.kernel { fill: #f0b37e; } .libc { fill: #b7d7a8; }
.ours { fill: #9cc2f5; } .other { fill: #d9dde3; } .lua { fill: #d5b8f0; }
@media (prefers-color-scheme: dark) {
  text { fill: #e8edf4; } rect { stroke: #10141a; } .back { fill: #10141a; }
  .kernel { fill: #8a5320; } .libc { fill: #3f6b33; }
  .ours { fill: #27569c; } .other { fill: #3b4554; } .lua { fill: #6a4296; }
}]]

local escapes = {["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;", ['"'] = "&quot;"}

local function escaped(text)
    return (text:gsub('[<>&"]', escapes))
end

local function depth_of(at, scale)
    local deepest = 0
    for _, child in ipairs(at.order) do
        if child.count * scale >= NARROWEST then
            deepest = math.max(deepest, depth_of(child, scale))
        end
    end
    return deepest + 1
end

-- The beginning of a name, cut to the width of its frame.
local function label(name, x, y, width)
    local room = math.floor((width - 6) / CHARACTER)
    if room < 3 then
        return ""
    end
    local text = #name <= room and name or name:sub(1, room - 1) .. "…"
    return ('<text x="%.1f" y="%d">%s</text>'):format(x + 3, y + 13, escaped(text))
end

local function draw(parts, at, x, level, drawing)
    local width = at.count * drawing.scale
    if width < NARROWEST then
        return
    end
    local y = drawing.height - MARGIN - level * HEIGHT
    parts[#parts + 1] = ('<g><title>%s, %.2f %%</title><rect class="%s" x="%.1f" y="%d"'
        .. ' width="%.1f" height="%d"/>%s</g>'):format(
        escaped(at.name), 100 * at.count / drawing.total, at.kind, x, y, width, HEIGHT,
        label(at.name, x, y, width))
    table.sort(at.order, function(a, b) return a.name < b.name end)
    for _, child in ipairs(at.order) do
        draw(parts, child, x, level + 1, drawing)
        x = x + child.count * drawing.scale
    end
end

function flame.svg(root, title, subtitle)
    local scale = (WIDTH - 2 * MARGIN) / math.max(root.count, 1)
    local height = TOP + depth_of(root, scale) * HEIGHT + MARGIN
    local parts = {('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"'
        .. ' aria-label="Flame graph">'):format(WIDTH, height),
        "<style>" .. STYLE .. "</style>",
        ('<rect class="back" width="%d" height="%d"/>'):format(WIDTH, height),
        ('<text class="title" x="%d" y="22">%s</text>'):format(MARGIN, escaped(title)),
        ('<text x="%d" y="42">%s</text>'):format(MARGIN, escaped(subtitle))}
    draw(parts, root, MARGIN, 1, {scale = scale, height = height, total = math.max(root.count, 1)})
    parts[#parts + 1] = "</svg>\n"
    return table.concat(parts, "\n")
end

return flame
