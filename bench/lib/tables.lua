-- SPDX-License-Identifier: MIT
--
-- What: numbers as people read them, and tables of them for the terminal and for Markdown.
-- Place: bench.lua adds a block for each table, fills in its rows and notes, and prints it; at the
-- end all of them may go into a file.

local tables = {}

local blocks = {} -- in the order of the output: {title, head, rows, notes}

-- ---- Numbers ----

-- median, minimum, maximum
function tables.spread(values)
    local sorted = table.move(values, 1, #values, 1, {})
    table.sort(sorted)
    local middle = (#sorted + 1) // 2
    local median = #sorted % 2 == 1 and sorted[middle] or (sorted[middle] + sorted[middle + 1]) / 2
    return median, sorted[1], sorted[#sorted]
end

function tables.thousands(number)
    local digits = ("%.0f"):format(number)
    return (digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

function tables.mebibytes(bytes)
    return ("%.1f MiB"):format(bytes / 1048576)
end

function tables.with_range(values)
    local median, low, high = tables.spread(values)
    return ("%s (%s-%s)"):format(tables.thousands(median), tables.thousands(low),
                                 tables.thousands(high))
end

-- Without a format, as a whole number.
function tables.median(values, format)
    local median = tables.spread(values)
    return format and format:format(median) or tables.thousands(median)
end

-- ---- Tables ----

function tables.add(title, head)
    local block = {title = title, head = head, rows = {}, notes = {}}
    blocks[#blocks + 1] = block
    return block
end

function tables.print(block)
    local widths = {}
    for _, row in ipairs{block.head, table.unpack(block.rows)} do
        for i, cell in ipairs(row) do
            widths[i] = math.max(widths[i] or 0, utf8.len(cell))
        end
    end
    print("\n" .. block.title)
    for _, row in ipairs(#block.head > 0 and {block.head, table.unpack(block.rows)} or {}) do
        local cells = {}
        for i, cell in ipairs(row) do
            local fill = (" "):rep(widths[i] - utf8.len(cell))
            cells[i] = i == 1 and cell .. fill or fill .. cell
        end
        print("  " .. table.concat(cells, "  "))
    end
    for _, note in ipairs(block.notes) do
        print("  " .. (note:gsub("\n(.)", "\n  %1")))
    end
end

local function markdown_of(block)
    local lines = {"**" .. block.title .. "**", ""}
    local function add(cells)
        lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
    end
    if #block.head > 0 then
        add(block.head)
        lines[#lines + 1] = "|---" .. ("|--:"):rep(#block.head - 1) .. "|"
        for _, row in ipairs(block.rows) do
            add(row)
        end
        lines[#lines + 1] = ""
    end
    for _, note in ipairs(block.notes) do
        lines[#lines + 1] = note .. "\n"
    end
    return table.concat(lines, "\n")
end

-- Between the marks "<!-- bench" and "<!-- /bench -->" where the file has them, else as all of it.
function tables.write_markdown(path, machine)
    local parts = {}
    for _, block in ipairs(blocks) do
        parts[#parts + 1] = markdown_of(block) .. "\n"
    end
    parts[#parts + 1] = "Measured by `bench/bench.lua` on " .. machine .. ".\n"
    local text = table.concat(parts)
    local old = io.open(path)
    local before, after
    if old then
        before, after = old:read("a"):match("^(.*<!%-%- bench[^\n]*\n).*(<!%-%- /bench %-%->.*)$")
        old:close()
    end
    local file = assert(io.open(path, "w"))
    file:write(before or "", text, after or "")
    file:close()
end

return tables
