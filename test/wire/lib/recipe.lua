-- SPDX-License-Identifier: MIT
--
-- Serves a script of docs/recipes.md.

local script = require "script"
local recipe = setmetatable({}, {__index = script})
recipe.__index = recipe

function recipe:__close(failure)
    script.__close(self, failure)
    os.remove(self.file)
end

-- Start the script of the section `title`, in which the text `from` is replaced by `to`, with more options of sxe-httpd.
-- If it names a file, that is a new one.
return function(title, from, to, ...)
    local page = assert(io.open("docs/recipes.md")):read("a")
    local text = assert(page:match("\n## " .. title .. "\n.-```lua\n(.-)```"))
    if from then
        local first, last = text:find(from, 1, true)
        text = text:sub(1, assert(first) - 1) .. to .. text:sub(last + 1)
    end
    local file = os.tmpname()
    os.remove(file)
    local server = script.start(text:gsub('file = "%w+"', function() return ("file = %q"):format(file) end), ...)
    server.file = file
    return setmetatable(server, recipe)
end
