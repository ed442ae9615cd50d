-- SPDX-License-Identifier: MIT
-- Checks files in JUnit's format by the rules that the schemas of Ant, Jenkins and GitLab have in common.
-- junit.check(text) -> the test cases: {name, outcome, message}, where outcome is "passed", "failure" ...

local xml = require "xml"

local junit = {}

-- For each element: required attributes, optional attributes, and allowed child elements.
local rules = {
    testsuites = {{"name", "tests", "failures", "errors", "time"}, {"skipped"}, {"testsuite"}},
    testsuite = {{"name", "tests", "failures", "errors", "time", "timestamp"}, {"skipped", "hostname"},
                 {"properties", "testcase"}},
    properties = {{}, {}, {"property"}},
    property = {{"name", "value"}, {}, {}},
    testcase = {{"name", "classname", "time"}, {}, {"skipped", "error", "failure", "system-out"}},
    failure = {{"message", "type"}, {}, {}},
    error = {{"message", "type"}, {}, {}},
    skipped = {{}, {"message"}, {}},
    ["system-out"] = {{}, {}, {}},
}

local has_text = {failure = true, error = true, skipped = true, ["system-out"] = true}

local function set_of(...)
    local set = {}
    for _, list in ipairs{...} do
        for _, name in ipairs(list) do
            set[name] = true
        end
    end
    return set
end

local function check_element(element)
    local rule = rules[element.name]
    assert(rule, "no such element: " .. element.name)
    for _, name in ipairs(rule[1]) do
        assert(element.attributes[name], ("<%s> has no %s"):format(element.name, name))
    end
    local allowed, inside = set_of(rule[1], rule[2]), set_of(rule[3])
    for name, value in pairs(element.attributes) do
        assert(allowed[name], ("<%s> has %s"):format(element.name, name))
        local pattern = set_of{"tests", "failures", "errors", "skipped"}[name] and "^%d+$"
                        or name == "time" and "^%d+%.%d+$"
                        or name == "timestamp" and "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d$"
        assert(not pattern or value:match(pattern), ("%s is %q"):format(name, value))
    end
    assert(has_text[element.name] or element.text:match("^%s*$"), "a text in " .. element.name)
    for _, child in ipairs(element) do
        assert(inside[child.name], ("<%s> in <%s>"):format(child.name, element.name))
        check_element(child)
    end
end

local function count(suite)
    local counts = {tests = 0, failure = 0, error = 0, skipped = 0, passed = 0}
    local cases = {}
    for _, case in ipairs(suite) do
        if case.name == "testcase" then
            local found = case[1]
            assert(#case == 1, "a case has one outcome")
            local outcome = found.name == "system-out" and "passed" or found.name
            counts.tests = counts.tests + 1
            counts[outcome] = counts[outcome] + 1
            cases[#cases + 1] = {name = case.attributes.name, outcome = outcome,
                                 message = found.attributes.message or found.text}
            assert(not cases[case.attributes.name], "two cases are called " .. case.attributes.name)
            cases[case.attributes.name] = cases[#cases]
        else
            assert(#cases == 0, "properties come first")
        end
    end
    return counts, cases
end

function junit.check(text)
    local root = xml.parse(text)
    assert(root.name == "testsuites", root.name)
    check_element(root)
    assert(#root == 1, "one suite")
    local counts, cases = count(root[1])
    for _, element in ipairs{root, root[1]} do
        equal(tonumber(element.attributes.tests), counts.tests, "tests")
        equal(tonumber(element.attributes.failures), counts.failure, "failures")
        equal(tonumber(element.attributes.errors), counts.error, "errors")
        equal(tonumber(element.attributes.skipped), counts.skipped, "skipped")
    end
    return cases
end

return junit
