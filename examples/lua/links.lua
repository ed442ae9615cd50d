-- SPDX-License-Identifier: MIT
-- Links that end by themselves: GET /new?path=/a.pdf gives one for an hour, and GET on the link says what it leads to.
-- The link holds the path and the end of its time, with an HMAC that only this server can make.
--   LINK_SECRET=$(openssl rand -hex 32) sxe-httpd --lua examples/lua/links.lua

local crypto, encoding = require "sxe.crypto", require "sxe.encoding"
local http = require "sxe.http"
local secret = os.getenv "LINK_SECRET" or crypto.random_bytes(32)
local key = crypto.hkdf("sha256", secret, { info = "links" })
local url = { url = true }
local r = http.router()

local function code_of(text)
  return encoding.encode_base64(crypto.hmac("sha256", key, text), url)
end

r:get("/new", function(req)
  local path = req.query.path or error{ status = 400, message = "which path?" }
  local text = encoding.encode_base64((os.time() + 3600) .. " " .. path, url)

  return "/open/" .. text .. "." .. code_of(text) .. "\n"
end)

r:get("/open/{link}", function(req)
  local text, code = req.params.link:match "^([^.]*)%.([^.]*)$"

  if not (text and crypto.equal(code_of(text), code)) then
    error{ status = 403, message = "this link was not made here" }
  end
  local ends, path = encoding.decode_base64(text, url):match "^(%d+) (.*)$"

  if os.time() > tonumber(ends) then error{ status = 410, message = "this link has ended" } end
  return "You may have " .. path .. "\n"
end)

return r
