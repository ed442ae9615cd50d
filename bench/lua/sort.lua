-- SPDX-License-Identifier: MIT
-- S8: GET returns a file's parts, sorted; POST appends to it. The argument is the directory.
local file, split = require "sxe.file", require "sxe".split
local directory = arg[1] or "/tmp"

return function(req)
    local name = directory .. "/" .. req.path:match "^/(%w+)$"

    if req.method == "POST" then
        assert(file.append(name, req:body()))
        return 204
    end
    local parts = {}
    for part in split(assert(file.read(name)), ", ") do
        parts[#parts + 1] = part
    end
    table.sort(parts)
    return table.concat(parts, ", ")
end
