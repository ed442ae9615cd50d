-- SPDX-License-Identifier: MIT
-- S5, its second candidate of ours: as generate.lua, but one call of the library makes all 108,000 letters and digits,
-- of the system's random numbers, so that no loop of Lua is measured.
local crypto, file = require "sxe.crypto", require "sxe.file"
local directory = arg[1] or "/tmp"

return function(req)
    local name = directory .. "/" .. req.id
    assert(file.write(name, crypto.random_text(108000)))
    local text = assert(file.read(name))
    assert(file.remove(name))
    return text
end
