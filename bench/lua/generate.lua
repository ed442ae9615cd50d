-- SPDX-License-Identifier: MIT
-- S5: 108,000 letters and digits, each by a random number of its own, are written to a file with a
-- fresh name, read back, and sent. The argument is the directory.
local file = require "sxe.file"
local directory = arg[1] or "/tmp"

local bytes = {("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"):byte(1, -1)}
local random, char = math.random, string.char
local LENGTH, PIECE = 108000, 100 -- characters, and those that are made into one string at a time

local function random_text()
    local piece, pieces = {}, {}

    for i = 1, LENGTH // PIECE do
        for j = 1, PIECE do
            piece[j] = bytes[random(62)]
        end
        pieces[i] = char(table.unpack(piece))
    end
    return table.concat(pieces)
end

return function(req)
    local name = directory .. "/" .. req.id
    assert(file.write(name, random_text()))
    local text = assert(file.read(name))
    assert(file.remove(name))
    return text
end
