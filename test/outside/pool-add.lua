-- SPDX-License-Identifier: MIT
-- Sums that do not fit 64 bits, by docs/lua-handlers.md.

local cli = require "cli"

local script = [[
    local pool = require "sxe.pool"
    local spec = { name = "sums", count = 2, states = { "free", "used" }, fields = "i64 i, u64 u" }
    local own = pool.open(spec)
    local element = own:take("free", "used")
    element.i, element.u = math.maxinteger, math.maxinteger
    for _, field in ipairs{"i", "u"} do
        assert(not pcall(own.add, own, element, field), field)
        assert(element[field] == math.maxinteger, field)
    end

    spec.file = %q
    local shared = assert(pool.open(spec))
    element = shared:take("free", "used")
    shared:write(element, { i = math.maxinteger, u = math.maxinteger })
    for _, field in ipairs{"i", "u"} do
        assert(shared:add(element, field) == math.mininteger, field)
        assert(shared:add(element, field, -1) == math.maxinteger, field)
    end

    local dict = require "sxe.dict".open{ name = "sums", cells = 4 }
    assert(dict:add("i", math.maxinteger) == math.maxinteger)
    assert(dict:add("i") == nil and dict:counter "i" == math.maxinteger)]]

-- promise: docs/lua-handlers.md: A sum that does not fit wraps in a shared pool, and raises an error in a pool of the
-- script alone.
test("a sum beyond 2^63 wraps in a shared pool, and raises in another", function()
    local path = os.tmpname()
    os.remove(path)
    local ran = cli.run("sxe-lua", "-e", script:format(path))
    os.remove(path)
    equal(ran.status, 0, ran.errors)
end)
