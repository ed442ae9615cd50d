-- SPDX-License-Identifier: MIT
--
-- What: writes numbers for people, and prints tables on the terminal.
-- Place: report.lua shows a result with it. A table is {title, head, rows}, all of texts.

local tables = {}

-- Returns median, minimum, maximum.
function tables.spread(values)
    local sorted = table.move(values, 1, #values, 1, {})
    table.sort(sorted)
    local middle = (#sorted + 1) // 2
    local median = #sorted % 2 == 1 and sorted[middle] or (sorted[middle] + sorted[middle + 1]) / 2
    return median, sorted[1], sorted[#sorted]
end

-- A number as text, with `digits` digits after the point; if digits is nil, with three digits in
-- all, and none after the point from 100 on.
function tables.number(number, digits)
    digits = math.tointeger(digits) -- in a result that was read from a file it is a float
    if not digits then
        local size = math.abs(number)
        digits = (size >= 100 or number == 0) and 0 or size >= 10 and 1 or size >= 1 and 2 or 3
    end
    local sign = number < 0 and "-" or ""
    local whole, rest = ("%." .. digits .. "f"):format(math.abs(number)):match("^(%d+)(.*)$")
    return sign .. whole:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "") .. rest
end

-- Print a table: the first column is flush left, the others are flush right.
function tables.print(block)
    local lines, widths = {block.head, table.unpack(block.rows)}, {}
    for _, line in ipairs(lines) do
        for i, cell in ipairs(line) do
            widths[i] = math.max(widths[i] or 0, utf8.len(cell))
        end
    end
    if block.title then
        print("\n" .. block.title)
    end
    for _, line in ipairs(lines) do
        local cells = {}
        for i, cell in ipairs(line) do
            local fill = (" "):rep(widths[i] - utf8.len(cell))
            cells[i] = i == 1 and cell .. fill or fill .. cell
        end
        print("  " .. table.concat(cells, "  "))
    end
end

return tables
