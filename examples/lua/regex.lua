-- SPDX-License-Identifier: MIT
-- Counts the requests in an access log by method, path and status, and finds a pattern in a text:
--     sxe-httpd --lua examples/lua/regex.lua &
--     curl -T access.log http://127.0.0.1:8000/counts
--     curl -G http://127.0.0.1:8000/find --data-urlencode 'pattern=(\w+)@(\w+)' --data-urlencode text=ann@home
local http = require "sxe.http"
local regex = require "sxe.regex"

-- Compiled once. With the flags m and x, ^ matches at each line, and blanks are ignored.
local LINE = assert(regex.compile([=[
  ^ (?<client> \S+ ) \ \S+\ \S+\ \[ [^\]]* \]\ "
  (?<method> [A-Z]+ ) \  (?<path> [^ ?"]+ ) [^"]* "\  (?<status> \d{3} ) \b ]=], "mx"))
local router = http.router()

router:put("/counts", function(req)
  local counts = {}

  for request in LINE:gmatch(req:body(16 << 20)) do
    local key = ("%s %s %s"):format(request.method, request.path, request.status)

    counts[key] = (counts[key] or 0) + 1
  end
  return counts
end)

-- The visitor's pattern is not trusted, and need not be: a search has a limit of steps.
router:get("/find", function(req)
  local pattern, why = regex.compile(req.query.pattern or "", "u")
  local match

  if pattern then match, why = pattern:match(req.query.text or "") end
  if why then error{ status = 422, message = why } end
  if not match then return { found = false } end
  return { found = true, text = match[0], groups = { table.unpack(match) } }
end)

return router
