-- SPDX-License-Identifier: MIT
-- Pages of HTML from the templates in examples/lua/views. What visitors write is escaped. Try it in a browser:
--   sxe-httpd --lua examples/lua/pages.lua --dev

local http, template = require "sxe.http", require "sxe.template"
local views = template.new{ root = "examples/lua/views" }
local notes = { "buy <milk>" }
local r = http.router()

r:get("/", function(_, res) return views:send(res, "list.html", { notes = notes }) end)

r:post("/", function(req, res)
  notes[#notes + 1] = req:form().text
  return res:redirect("/", 303)
end)

return r
