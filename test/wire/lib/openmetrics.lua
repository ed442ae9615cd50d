-- SPDX-License-Identifier: MIT
-- Reads the text format of OpenMetrics 1.0.0, and fails on all that the specification forbids.
-- openmetrics.parse(text) -> {[family] = {type, unit, help, samples = {['name{a="b"}'] = number}, order}}

local openmetrics = {}

local suffixes = {
    counter = {_total = true, _created = true},
    gauge = {[""] = true},
    info = {_info = true},
    histogram = {_bucket = true, _count = true, _sum = true, _created = true},
}

local function number_of(text)
    if text == "+Inf" then
        return math.huge
    end
    assert(text:match("^-?%d+%.?%d*$") or text:match("^-?%d+%.?%d*e[+-]%d+$"), "no number: " .. text)
    return tonumber(text)
end

-- Parse labels such as {le="0.1",b="c\"d"} to a table by name; a name may occur only once.
local function labels_of(text)
    local labels = {}
    local at = 2
    while true do
        local name, begin = text:match('^([%a_][%w_]*)="()', at)
        assert(name and not labels[name], "bad labels: " .. text)
        local finish = begin
        while text:sub(finish, finish) ~= '"' do
            local byte = text:sub(finish, finish)
            assert(byte ~= "" and byte ~= "\n", "a value without an end: " .. text)
            assert(byte ~= "\\" or text:match('^[\\"n]', finish + 1), "no such escape: " .. text)
            finish = finish + (byte == "\\" and 2 or 1)
        end
        labels[name] = text:sub(begin, finish - 1)
        at = finish + 1
        if text:sub(at) == "}" then
            return labels
        end
        assert(text:sub(at, at) == ",", "bad labels: " .. text)
        at = at + 1
    end
end

local function check_value(family, suffix, labels, value)
    if family.type ~= "gauge" then
        assert(value >= 0 and value == value, "a count below 0")
    end
    if suffix == "_bucket" or suffix == "_count" then
        assert(math.type(value) == "integer" or value % 1 == 0, "part of a count")
    end
    if suffix == "_bucket" then
        local le = number_of(assert(labels.le, "a bucket without le"))
        local last = family.last_bucket
        assert(not last or (le > last[1] and value >= last[2]), "buckets do not rise")
        family.last_bucket = {le, value}
    end
    assert(family.type ~= "info" or value == 1, "an info that is not 1")
end

local function check_end(name, family)
    assert(next(family.samples), name .. " has no sample")
    assert(not family.unit or name:sub(-#family.unit - 1) == "_" .. family.unit, name .. " does not end in its unit")
    if family.type == "histogram" then
        assert(family.last_bucket[1] == math.huge, name .. " has no bucket +Inf")
        assert(family.last_bucket[2] == family.samples[name .. "_count"], name .. "'s count is not that of +Inf")
        assert(family.samples[name .. "_sum"], name .. " has no sum")
    end
end

local function take_sample(name, family, line)
    local sample, labels, value = line:match("^([%a_:][%w_:]*)(%b{}) (%S+)$")
    if not sample then
        sample, value = line:match("^([%a_:][%w_:]*) (%S+)$")
    end
    assert(sample, "no sample: " .. line)
    assert(sample:sub(1, #name) == name, ("%s is among %s"):format(sample, name))
    local suffix = sample:sub(#name + 1)
    assert(suffixes[family.type][suffix], ("%s is no sample of a %s"):format(sample, family.type))
    local key = sample .. (labels or "")
    assert(not family.samples[key], key .. " is there twice")
    family.samples[key] = number_of(value)
    check_value(family, suffix, labels and labels_of(labels) or {}, family.samples[key])
end

function openmetrics.parse(text)
    assert(utf8.len(text), "it is no UTF-8")
    assert(text:sub(-6) == "# EOF\n", "it does not end with # EOF")
    local families, name = {}, nil
    for line in text:sub(1, -7):gmatch("([^\n]*)\n") do
        local what, of, rest = line:match("^# (%u+) (%S+) (.+)$")
        if what == "TYPE" then
            assert(not families[of], of .. " is there twice")
            assert(suffixes[rest], "no such type: " .. rest)
            if name then
                check_end(name, families[name])
            end
            name = of
            families[of] = {type = rest, samples = {}}
        elseif what == "UNIT" or what == "HELP" then
            local key = what:lower()
            assert(of == name and not families[of][key] and not next(families[of].samples), line)
            families[of][key] = rest
        else
            assert(line:sub(1, 1) ~= "#", "no such comment: " .. line)
            take_sample(name, assert(families[name], "a sample before its type"), line)
        end
    end
    check_end(name, families[name])
    return families
end

-- Check two scrapes of the same target: no counter may be lower in the later one.
function openmetrics.check_later(before, later)
    for name, family in pairs(before) do
        for sample, value in pairs(family.samples) do
            assert(family.type == "gauge" or later[name].samples[sample] >= value, sample .. " has fallen")
        end
    end
end

return openmetrics
