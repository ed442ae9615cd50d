-- SPDX-License-Identifier: MIT
--
-- The metrics of programs, from the calls in their sources that print the HELP and TYPE lines.

local html = require "html"

local metrics = {}

-- The arguments of the functions that begin a family, each a name or, if it is quoted in the source, a text. A function that
-- is missing here and prints a HELP line is an error.
local shapes = {
    ["apps/httpd/admin/prometheus.c"] = {
        help = "metrics that `sxe-httpd --admin` shows at /metrics", program = "sxe-httpd", prefix = "",
        begin_family = {"text", "name", "type", "help"},
        add_number_metric = {"text", "name", "type", "help"},
        add_seconds_metric = {"text", "name", "type", "help"},
    },
    ["apps/http/report/metrics-text.c"] = {
        help = "metrics that `sxe-http --metrics` writes", program = "sxe-http", prefix = "sxe_http_",
        begin_metric = {"text", "type", "name", "unit", "help"},
        add_counter_metric = {"text", "name", "unit", "help", type = "counter"},
        add_gauge = {"text", "name", "help", type = "gauge"},
        add_times_metric = {"text", "name", "help", type = "histogram", unit = "seconds"},
    },
}

-- The quoted text that an argument is, its parts joined; nil if it is something else.
local function literal(argument)
    local parts = {}
    if argument:find '^%s*"' then
        for part in argument:gmatch '"(.-[^\\])"' do
            parts[#parts + 1] = part:gsub('\\"', '"')
        end
        return table.concat(parts)
    end
end

-- Split at commas that are in no quotation and in no bracket.
local function arguments(list)
    local found, from, depth, is_quoted = {}, 1, 0, false
    for at, character in list:gmatch "()([\"(),])" do
        if character == '"' and list:sub(at - 1, at - 1) ~= "\\" then
            is_quoted = not is_quoted
        elseif not is_quoted and character ~= '"' then
            depth = depth + (character == "(" and 1 or character == ")" and -1 or 0)
            if character == "," and depth == 0 then
                found[#found + 1] = list:sub(from, at - 1)
                from = at + 1
            end
        end
    end
    found[#found + 1] = list:sub(from)
    return found
end

local function family(shape, list, prefix)
    local one = {type = shape.type, unit = shape.unit}
    for i, argument in ipairs(arguments(list)) do
        if shape[i] then
            one[shape[i]] = literal(argument) or one[shape[i]]
        end
    end
    if one.name and one.help then
        one.name = prefix .. one.name .. (prefix ~= "" and one.type == "counter" and "_total" or "")
        return one
    end
end

function metrics.read()
    local all = {}
    for path, shape in pairs(shapes) do
        local file <close> = assert(io.open(path))
        local source = file:read("a")
        local group = {help = shape.help, program = shape.program, path = path}
        for name, list in source:gmatch "\n%s+([%w_]+)(%b());" do
            if type(shape[name]) == "table" then
                group[#group + 1] = family(shape[name], list:sub(2, -2), shape.prefix)
            end
        end
        assert(#group > 10, path .. ": no metrics found; tools/site/metrics.lua has other names of functions")
        all[#all + 1] = group
    end
    table.sort(all, function(a, b) return a.path > b.path end)
    return all
end

-- The body of the page, and what the index of the search has of it.
function metrics.page()
    local out, entries, seen = {'<h1 id="metrics">Metrics</h1>',
        '<p>Families of metrics in the format of Prometheus. <a href="observability.md">observability.md</a> says how they '
        .. 'are collected, and which labels they have.</p>'}, {}, {}
    for _, group in ipairs(metrics.read()) do
        out[#out + 1] = ('<h2 id="%s">%s</h2>'):format(group.program, group.program)
        out[#out + 1] = "<p>The " .. group.help:gsub("`(.-)`", "<code>%1</code>")
            .. ".</p>\n<div class=\"scroll\"><table>\n<tr><th>name</th><th>type</th><th>unit</th><th>meaning</th></tr>"
        for _, one in ipairs(group) do
            local unit = one.unit or one.name:match "_(seconds)" or one.name:match "_(bytes)" or ""
            out[#out + 1] = ("<tr%s><td><code>%s</code></td><td>%s</td><td>%s</td><td>%s</td></tr>"):format(
                seen[one.name] and "" or (' id="%s"'):format(one.name), one.name, one.type, unit, html.escape(one.help))
            entries[#entries + 1] = not seen[one.name] and {one.name, "metric", one.name, one.help} or nil
            seen[one.name] = true
        end
        out[#out + 1] = "</table></div>"
    end
    return table.concat(out, "\n"), entries
end

return metrics
