-- SPDX-License-Identifier: MIT
-- Keeps texts compressed, and sends them as they are to clients that know gzip:
--     sxe-httpd --lua examples/lua/zlib.lua &
--     seq 100000 | curl -T - http://127.0.0.1:8000/texts/numbers
--     curl --compressed http://127.0.0.1:8000/texts/numbers | tail -1
local http = require "sxe.http"
local zlib = require "sxe.zlib"
local TEXT_MAX <const>, TEXTS_MAX <const> = 4 << 20, 1000
local texts, count = {}, 0

-- Compress a body while it arrives: the server holds one chunk of it.
local function compress_body(req)
  local stream <close> = zlib.compressor{ level = 9 }
  local parts, size = {}, 0

  for chunk in req:chunks() do
    size = size + #chunk
    if size > TEXT_MAX then error{ status = 413, message = "the text is too long" } end
    parts[#parts + 1] = stream:add(chunk)
  end
  return table.concat(parts) .. stream:finish()
end

-- A body of gzip is kept as it is, after a test: a few bytes of gzip may stand for gigabytes.
local function take_gzip(req)
  local text, why = zlib.decompress(req:body(), { max = TEXT_MAX })

  return text and req:body() or error{ status = 422, message = why }
end

local router = http.router()

router:put("/texts/{name}", function(req)
  local name = req.params.name
  if not texts[name] and count == TEXTS_MAX then error{ status = 507, message = "too many texts" } end
  local data = req.headers["content-encoding"] == "gzip" and take_gzip(req) or compress_body(req)
  count, texts[name] = count + (texts[name] and 0 or 1), data
  return 201, { bytes = #data }
end)

router:get("/texts/{name}", function(req, res)
  local data = texts[req.params.name] or error{ status = 404, message = "no such text" }

  res.headers.Vary = "Accept-Encoding"
  if (req.headers["accept-encoding"] or ""):find("gzip", 1, true) then res.headers["Content-Encoding"] = "gzip" end
  return res.headers["Content-Encoding"] and data or zlib.decompress(data, { max = TEXT_MAX })
end)

return router
