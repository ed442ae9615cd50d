-- SPDX-License-Identifier: MIT
--
-- What: a result as a page with plots, in one file that loads nothing.
-- Place: bench.lua's last step. Shape: bench/page.html draws what stands in it as JSON, with PLOT,
-- the script that it has in common with sxe-http's page.

local json = require "json"

local page = {}

local PLOT = "apps/http/plot.js"

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read("a")
end

-- No text of the result may end the script element.
local function embedded(result)
    return (json.encode(result):gsub("<", "\\u003c"))
end

function page.write(result, template, path)
    local whole = read(template):gsub("/%* plot%.js %*/", function() return read(PLOT) end)
    local before, after = whole:match('^(.*<script type="application/json" id="result">)'
                                               .. '.-(</script>.*)$')
    local file <close> = assert(io.open(path, "w"))
    file:write(before, "\n", embedded(result), after)
end

return page
