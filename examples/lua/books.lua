-- SPDX-License-Identifier: MIT
-- An API in JSON that docs/tutorial-api.md explains:   sxe-httpd --lua examples/lua/books.lua -w 2 -- books.dict
local dict, http, json = require "sxe.dict", require "sxe.http", require "sxe.json"

local books = assert(dict.open{ name = "books", cells = 10000, file = arg[1] or "books.dict" })
local r = http.router()

local function book_of(req)
  local book = req:json()
  if type(book.title) ~= "string" or book.title == "" then
    error{ status = 422, message = "title must be a text" }
  end
  return { title = book.title, year = math.tointeger(book.year) }
end

local function text_of(req)
  return books:get("book:" .. req.params.id) or error{ status = 404, message = "no such book" }
end

r:get("/books/{id}", function(req) return json.decode(text_of(req)) end)

r:post("/books", function(req, res)
  local book = book_of(req)
  book.id = assert(books:add("last id"))
  assert(books:put("book:" .. book.id, json.encode(book)))
  res.headers.Location = "/books/" .. book.id
  return 201, book
end)

r:put("/books/{id}", function(req)
  local book, old = book_of(req), text_of(req)
  book.id = json.decode(old).id
  return assert(books:cas("book:" .. book.id, old, json.encode(book))) and book or 409
end)

r:delete("/books/{id}", function(req) return books:remove("book:" .. req.params.id) and 204 or 404 end)
r:on_error(function(_, _, err) return { error = err.message } end)

return r
