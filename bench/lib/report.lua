-- SPDX-License-Identifier: MIT
--
-- What: shows a result as tables: on the terminal, in docs/benchmarks.md and in the README.
-- Place: bench.lua prints each row when it is measured. Shape: rows of result.lua.

local result = require "result"
local tables = require "tables"

local report = {}

local ROUNDS = 7 -- the usual number; a row with fewer says so

local function spread_of(row, peer, prefix)
    local middle, low, high = peer.median, peer.min, peer.max
    if prefix then
        middle, low, high = peer[prefix], peer[prefix .. "_min"], peer[prefix .. "_max"]
    end
    if not middle then
        return "-"
    end
    local digits = prefix and 2 or row.digits
    if low == high then
        return tables.number(middle, digits)
    end
    return ("%s (%s-%s)"):format(tables.number(middle, digits), tables.number(low, digits),
                                 tables.number(high, digits))
end

local function find(row, name)
    for _, peer in ipairs(row.peers) do
        if peer.name == name then
            return peer
        end
    end
    return nil
end

local function title_of(row, name)
    local peer = find(row, name)
    return peer and peer.title or name
end

-- ---- Columns of a row's table ----

local function has_more(row, key)
    for _, peer in ipairs(row.peers) do
        if peer.more[key] then
            return true
        end
    end
    return false
end

local function add_standard(row, add)
    if row.reference and #row.peers > 1 then
        add("÷ " .. title_of(row, row.reference) .. " (min-max)", function(peer)
            return spread_of(row, peer, "ratio")
        end)
    end
    if row.peers[1] and row.peers[1].cpu_server then
        add("CPU: server, client", function(peer)
            return ("%.2f, %.2f"):format(peer.cpu_server or 0, peer.cpu_client or 0)
        end)
        add("limited by", function(peer) return peer.bottleneck or "-" end)
    end
end

local function columns_of(row)
    local columns = {}
    local function add(title, show) columns[#columns + 1] = {title, show} end
    add("", function(peer) return peer.title end)
    if row.peers[1] and #row.peers[1].values > 0 then
        add(row.unit .. " (min-max)", function(peer) return spread_of(row, peer) end)
        add_standard(row, add)
    end
    local more = row.columns or {{"server_us", "server µs/request", 2}, {"p50", "p50 µs", 0},
                                 {"p99", "p99 µs", 0}}
    for _, column in ipairs(more) do
        local key, title, digits = table.unpack(column)
        if has_more(row, key) and title ~= row.unit then
            add(title, function(peer)
                return peer.more[key] and tables.number(peer.more[key], digits) or "-"
            end)
        end
    end
    return columns
end

local function table_of(row)
    local columns, block = columns_of(row), {head = {}, rows = {}}
    for i, column in ipairs(columns) do
        block.head[i] = column[1]
    end
    for _, peer in ipairs(row.peers) do
        local cells = {}
        for i, column in ipairs(columns) do
            cells[i] = column[2](peer)
        end
        if peer.skipped then
            cells = {peer.title, peer.skipped}
        end
        block.rows[#block.rows + 1] = cells
    end
    return block
end

-- ---- Lines over x, candles ----

-- A table with one column for each peer. entries_of(peer) is a list of {line, place of that line,
-- cell}.
local function crossed(row, title, corner, entries_of)
    local block, lines = {title = title, head = {corner}, rows = {}}, {}
    for i, peer in ipairs(row.peers) do
        block.head[i + 1] = peer.title
        for _, entry in ipairs(entries_of(peer)) do
            local name, place, cell = table.unpack(entry)
            if not lines[name] then
                lines[name] = {name, place = place}
                table.insert(block.rows, lines[name])
            end
            lines[name][i + 1] = cell
        end
    end
    table.sort(block.rows, function(a, b) return a.place < b.place end)
    for _, line in ipairs(block.rows) do
        for i = 1, #row.peers do
            line[i + 1] = line[i + 1] or "-"
        end
    end
    return block
end

local function points_of(row, key, title, scale, digits)
    return crossed(row, title, row.x_title or "x", function(peer)
        local entries = {}
        for _, point in ipairs(peer.points or {}) do
            if point[key] then
                entries[#entries + 1] = {tables.number(point.x, 0), point.x,
                                         tables.number(point[key] / scale, digits)}
            end
        end
        return entries
    end)
end

local function most_clients(row)
    local most = 1
    for _, peer in ipairs(row.peers) do
        for _, candle in ipairs(peer.candles or {}) do
            most = math.max(most, candle.clients or 1)
        end
    end
    return most
end

-- The candles of the samples with the most clients; the page and the CSV have all samples.
local function candles_of(row)
    local most = most_clients(row)
    return crossed(row, "mean, and longest, in µs", "servers x clients, kind", function(peer)
        local entries = {}
        for i, candle in ipairs(peer.candles or {}) do
            if (candle.clients or 1) == most then
                entries[#entries + 1] = {
                    ("%d x %d, %s"):format(candle.servers or 1, most, candle.kind or ""), i,
                    ("%s, %s"):format(tables.number(candle.mean), tables.number(candle.max))}
            end
        end
        return entries
    end)
end

local function has(row, key)
    for _, peer in ipairs(row.peers) do
        if peer[key] then
            return true
        end
    end
    return false
end

-- The tables of a row.
local function blocks_of(row)
    local blocks = {table_of(row)}
    if has(row, "points") then
        blocks[#blocks + 1] = points_of(row, "value", row.unit, 1, row.digits)
        local memory = points_of(row, "memory", "MiB of memory", 1048576)
        if #memory.rows > 0 then
            blocks[#blocks + 1] = memory
        end
    end
    if has(row, "candles") then
        blocks[#blocks + 1] = candles_of(row)
    end
    return blocks
end

-- ---- Sentences ----

-- The name of what a target is about.
local function unit_of(row, target)
    for _, column in ipairs(row.columns or {}) do
        if column[1] == target.key then
            return column[2]
        end
    end
    return target.key or row.unit
end

function report.target(row, target)
    local wanted = target.ratio or target.value
    local text = ("target (%s): %s %s %s%s"):format(
        target.of or "ours", target.better == "more" and "at least" or "at most",
        tables.number(wanted), target.peer and "of " .. title_of(row, target.peer)
        or unit_of(row, target), target.peer and target.key and " in " .. target.key or "")
    if not target.got then
        return text .. ": not measured here"
    end
    return ("%s: %s, %s"):format(text, tables.number(target.got), target.is_met and "met"
                                 or "MISSED by " .. tables.number(math.abs(target.got - wanted)))
end

function report.sentences(row)
    local list = {}
    local function add(...) list[#list + 1] = (...) end
    for _, target in ipairs(row.targets) do
        add(report.target(row, target))
    end
    for _, peer in ipairs(row.peers) do
        if peer.note then
            add(peer.title .. ": " .. peer.note)
        end
    end
    for _, text in ipairs(row.notes or {}) do
        add(text)
    end
    if row.rounds < ROUNDS and not row.is_exact then
        add(("of %d round%s"):format(row.rounds, row.rounds > 1 and "s" or ""))
    end
    if row.disagreement then
        add("two clients disagree: " .. table.concat(row.disagreement, "; "))
    end
    for _, skipped in ipairs(row.skipped or {}) do
        add(("not measured: %s: %s"):format(skipped.name, skipped.why))
    end
    if row.second_why then
        add("void are the rounds of the second client: " .. row.second_why)
    end
    if row.is_void then
        add("VOID: " .. row.why_void)
    elseif #row.void_samples > 0 then
        add(("samples that were void and taken again: %d"):format(#row.void_samples))
    end
    return list
end

-- ---- The terminal ----

function report.print(row)
    print(("\n%s  %s"):format(row.name, row.title))
    if row.work then
        print("  " .. row.work)
    end
    for _, block in ipairs(blocks_of(row)) do
        if #block.rows > 0 and #block.head > 1 then
            tables.print(block)
        end
    end
    for _, sentence in ipairs(report.sentences(row)) do
        print("  " .. sentence)
    end
    io.stdout:flush()
end

-- The day on which the rows were measured, or the first and the last day.
local function dates_of(got)
    local first, last
    for _, row in ipairs(got.rows) do
        local date = (row.date or got.date):sub(1, 10)
        first = first and first < date and first or date
        last = last and last > date and last or date
    end
    return first == last and (first or got.date:sub(1, 10)) or first .. " to " .. last
end

-- Print how the run ended: how many rows it has, which rows are void, and which targets were
-- missed.
function report.print_end(got)
    local void, missed, number = {}, {}, 0
    for _, row in ipairs(got.rows) do
        if row.is_void then
            void[#void + 1] = row.name
        end
        for _, target in ipairs(row.targets) do
            number = number + 1
            if target.is_met == false then
                missed[#missed + 1] = row.name
            end
        end
    end
    print(("\n%s, %s"):format(got.machine.text, dates_of(got)))
    if #got.missing > 0 then
        print("not measured: " .. table.concat(got.missing, " "))
    end
    print(("%d rows, void: %s; %d targets, missed: %s"):format(
        #got.rows, #void > 0 and table.concat(void, " ") or "none", number,
        #missed > 0 and table.concat(missed, " ") or "none"))
end

-- ---- Markdown ----

-- "0.93" where that is the quotient of the two printed medians, else "0.97~": a ratio is the median
-- of the rounds' ratios, and the speed of the machine drifts between rounds.
local function ratio_text(ratio, median, reference)
    local drifts = reference == 0 or math.abs(ratio - median / reference) > 0.01
    return ("%.2f%s"):format(ratio, drifts and "~" or "")
end

local function reference_of(row)
    return row.reference and find(row, row.reference)
end

local CELL_MAX = 120 -- characters of a cell, so that the table can be read

-- The parts joined into as few cells as can hold them.
local function cells_of(parts)
    local cells = {parts[1] or ""}
    for i = 2, #parts do
        local longer = cells[#cells] .. "; " .. parts[i]
        if utf8.len(longer) <= CELL_MAX then
            cells[#cells] = longer
        else
            cells[#cells + 1] = parts[i]
        end
    end
    return cells
end

-- The other peers' values, with their ratios to the row's reference, if there is one.
local function others_of(row)
    local parts, reference = {}, reference_of(row)
    for _, peer in ipairs(row.peers) do
        if peer.name ~= row.ours and peer.name ~= row.reference and peer.median then
            local ratio = peer.ratio and reference and reference.median
                          and (" (%s)"):format(ratio_text(peer.ratio, peer.median, reference.median))
            parts[#parts + 1] = ("%s %s%s"):format(peer.title, tables.number(peer.median, row.digits),
                                                   ratio or "")
        end
    end
    if row.is_void then
        parts[#parts + 1] = "(void)"
    end
    return cells_of(parts)
end

local LEFT_OUT = {examples = true, micro = true, S8 = true} -- the page shows these groups

-- A line of the table, and a further line for each further cell that the other peers need.
local function lines_of(row)
    local ours = find(row, row.ours)
    if not ours or not ours.median or LEFT_OUT[row.group] then
        return nil
    end
    local name = ours.name ~= "sxe-httpd" and ours.title .. ": " or ""
    local reference = row.reference ~= ours.name and reference_of(row)
    local others = others_of(row)
    local cells = {
        row.name, row.title, row.unit, name .. spread_of(row, ours),
        reference and ours.ratio and ("%s of %s's %s"):format(
            ratio_text(ours.ratio, ours.median, reference.median), reference.title,
            tables.number(reference.median, row.digits)) or "",
        table.concat(others, " |\n| | | | | | ")}
    return "| " .. table.concat(cells, " | ") .. " |"
end

local function measured_on(got)
    return ("\nMeasured on %s: %s."):format(dates_of(got), got.machine.text)
end

function report.markdown(got)
    local lines = {"| row | work | what counts | ours (min-max) | ratio | others (as ratios to the "
                   .. "same) |", "|---|---|---|--:|--:|---|"}
    for _, row in ipairs(got.rows) do
        lines[#lines + 1] = lines_of(row)
    end
    lines[#lines + 1] = "\nA ratio is the median of the rounds' ratios. A ~ marks one that the two "
                        .. "printed medians do not give,\nbecause the machine's speed drifted "
                        .. "between the rounds."
    lines[#lines + 1] = measured_on(got)
    return table.concat(lines, "\n") .. "\n"
end

-- The columns of a short table: a title, and the peers that may fill the column.
local COLUMNS = {{"limit program", "limit"}, {"nginx", "nginx", "nginx-lua"}, {"Go", "go"},
                 {"Node", "node", "node-cluster"}}

local function short_cell(row, column)
    for i = 2, #column do
        local peer = find(row, column[i])
        if peer and peer.median then
            return tables.number(peer.median, row.digits)
        end
    end
    return "-"
end

-- A short table of the rows with these names, without ratios.
function report.short(got, names)
    local head, rule, lines = {"work", "what counts", "libsxe"}, {"---", "---", "--:"}, {}
    for _, column in ipairs(COLUMNS) do
        head[#head + 1], rule[#rule + 1] = column[1], "--:"
    end
    for _, row in ipairs(got.rows) do
        if (" " .. names .. " "):find(" " .. row.name .. " ", 1, true) then
            local cells = {row.title, row.unit, short_cell(row, {"", row.ours})}
            for i, column in ipairs(COLUMNS) do
                cells[3 + i] = short_cell(row, column)
            end
            lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
        end
    end
    return ("| %s |\n|%s|\n%s\n%s\n"):format(table.concat(head, " | "), table.concat(rule, "|"),
                                          table.concat(lines, "\n"), measured_on(got))
end

-- Write between the marks "<!-- bench ... -->" and "<!-- /bench -->" of a file, or a new file. A mark
-- 'bench rows="S1 S4"' gets the short table of those rows.
function report.write_markdown(got, path)
    local old = io.open(path)
    local before, after
    if old then
        before, after = old:read("a"):match("^(.*<!%-%- bench[^\n]*\n).*(<!%-%- /bench %-%->.*)$")
        old:close()
    end
    local names = before and before:match('<!%-%- bench rows="([^"\n]*)"[^\n]*\n$')
    local text = names and report.short(got, names) or report.markdown(got)
    result.write_file(path, (before or "") .. text .. (after or ""))
end

-- A row's candles as CSV, in microseconds.
function report.csv(row)
    local lines = {"peer,servers,clients,kind,min_us,mean_us,mean_101_us,max_us"}
    for _, peer in ipairs(row.peers) do
        for _, candle in ipairs(peer.candles or {}) do
            lines[#lines + 1] = ("%s,%s,%s,%s,%.1f,%.1f,%.1f,%.1f"):format(
                peer.name, candle.servers or 1, candle.clients or 1, candle.kind or "", candle.min,
                candle.mean, candle.p or candle.mean * 1.01, candle.max)
        end
    end
    return #lines > 1 and table.concat(lines, "\n") .. "\n" or nil
end

return report
