-- SPDX-License-Identifier: MIT
--
-- What: writes a result as a page with plots, in one file that loads nothing.
-- Place: bench.lua writes it after each row. Shape: bench/page.html contains the result as JSON and
-- draws it with PLOT, a script that sxe-http's page uses, too.

local json = require "json"
local result = require "result"

local page = {}

local PLOT = "apps/http/report/plot.js"

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read("a")
end

-- The result as JSON in which no text can end the script element.
local function embedded(got)
    return (json.encode(got):gsub("<", "\\u003c"))
end

function page.write(got, template, path)
    local whole = read(template):gsub("/%* plot%.js %*/", function() return read(PLOT) end)
    local before, after = whole:match('^(.*<script type="application/json" id="result">)'
                                               .. '.-(</script>.*)$')
    result.write_file(path, before .. "\n" .. embedded(got) .. after)
end

return page
