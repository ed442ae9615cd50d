-- SPDX-License-Identifier: MIT
--
-- A strict reader of Prometheus' text format 0.0.4: `prometheus.read(text)` returns the families by name, or raises an
-- error that names the line. It was written from the format's page ("Exposition formats") alone, and shares no code
-- with the writer that it checks.
--
-- A family: {type = "counter", help = "...", samples = {{name =, labels = {k = v}, value =}, ...}}.

local prometheus = {}

local TYPES = {counter = true, gauge = true, histogram = true, summary = true, untyped = true}
local SUFFIXES = {histogram = {_bucket = true, _sum = true, _count = true},
                  summary = {[""] = true, _sum = true, _count = true}}

local function refuse(line, why)
    error(("%s: %s"):format(why, line), 0)
end

local function number_of(text)
    if text == "+Inf" then
        return math.huge
    elseif text == "-Inf" then
        return -math.huge
    elseif text == "NaN" then
        return 0 / 0
    end
    return text:find("^[-+]?[%d.]+[eE]?[-+]?%d*$") and tonumber(text)
end

-- Parse the labels after "{". Returns them, and the position after "}".
local function read_labels(line, at)
    local labels = {}
    while line:sub(at, at) ~= "}" do
        local name, from = line:match('^([%a_][%w_]*)="()', at)
        if not name or labels[name] then
            refuse(line, "a label has no name, or one that is there already")
        end
        local value = {}
        while line:sub(from, from) ~= '"' do
            local byte = line:sub(from, from)
            if byte == "" then
                refuse(line, "a label's value has no end")
            elseif byte == "\\" then
                byte = ({["\\"] = "\\", ['"'] = '"', n = "\n"})[line:sub(from + 1, from + 1)]
                       or refuse(line, "an escape that does not exist")
                from = from + 1
            end
            value[#value + 1] = byte
            from = from + 1
        end
        labels[name] = table.concat(value)
        at = line:match("^,?()", from + 1)
        if at == from + 1 and line:sub(at, at) ~= "}" then
            refuse(line, "no comma between two labels")
        end
    end
    return labels, at + 1
end

local function key_of(labels, without)
    local names = {}
    for name, value in pairs(labels) do
        if name ~= without then
            names[#names + 1] = ("%s=%q"):format(name, value)
        end
    end
    table.sort(names)
    return table.concat(names, ",")
end

-- Add a sample to the family whose # TYPE line came last; the sample's name must belong to that family.
local function add_sample(family, line, seen)
    local name, at = line:match("^([%a_:][%w_:]*)()")
    if not name then
        refuse(line, "no name")
    end
    local labels = {}
    if line:sub(at, at) == "{" then
        labels, at = read_labels(line, at + 1)
    end
    local value = number_of(line:match("^ ([^ ]+)$", at) or refuse(line, "no value"))
                  or refuse(line, "no number")
    local suffixes = family and (SUFFIXES[family.type] or {[""] = true})
    if not family or name:sub(1, #family.name) ~= family.name
       or not suffixes[name:sub(#family.name + 1)] then
        refuse(line, "a sample that is not of the family before it")
    end
    local key = name .. "{" .. key_of(labels) .. "}"
    if seen[key] then
        refuse(line, "a sample that was there before")
    end
    seen[key] = true
    if family.type == "counter" and not (value >= 0 and name:find("_total$")) then
        refuse(line, "no counter")
    end
    family.samples[#family.samples + 1] = {name = name, labels = labels, value = value}
end

-- Check a histogram: the counts grow with le, that of le="+Inf" is last and equals _count, and each set of labels has a
-- _sum.
local function check_histogram(family)
    local sets = {}
    for _, sample in ipairs(family.samples) do
        local key = key_of(sample.labels, "le")
        local set = sets[key] or {le = -math.huge, number = 0}
        sets[key] = set
        if sample.name:find("_bucket$") then
            local le = number_of(sample.labels.le or "") or refuse(key, "a bucket without a bound")
            if le <= set.le or sample.value < set.number then
                refuse(key, "buckets that do not grow")
            end
            set.le, set.number = le, sample.value
        else
            set[sample.name:match("_(%a+)$")] = sample.value
        end
    end
    for key, set in pairs(sets) do
        if set.le ~= math.huge or set.number ~= set.count or not set.sum then
            refuse(key, "a histogram without +Inf, sum or count, or they differ")
        end
    end
end

function prometheus.read(text)
    local families, seen, helps = {}, {}, {}
    local family
    if text:sub(-1) ~= "\n" then
        error("the last line has no end", 0)
    end
    for line in text:gmatch("([^\n]*)\n") do
        local help, about = line:match("^# HELP ([%a_:][%w_:]*) (.*)$")
        local name, kind = line:match("^# TYPE ([%a_:][%w_:]*) (%a+)$")
        if help then
            helps[help] = helps[help] and refuse(line, "a second HELP") or about
        elseif name then
            if families[name] or not TYPES[kind] then
                refuse(line, "a second TYPE, or one that does not exist")
            end
            family = {name = name, type = kind, help = helps[name], samples = {}}
            families[name] = family
        elseif line ~= "" and line:sub(1, 1) ~= "#" then
            add_sample(family, line, seen)
        end
    end
    for _, each in pairs(families) do
        if each.type == "histogram" then
            check_histogram(each)
        end
    end
    return families
end

return prometheus
