-- SPDX-License-Identifier: MIT
-- A notice board, see README.md:   sxe-httpd --lua app.lua -w 2 -- DIRECTORY

local crypto, dict, file = require "sxe.crypto", require "sxe.dict", require "sxe.file"
local http, multipart, session = require "sxe.http", require "sxe.multipart", require "sxe.session"
local store, template = require "sxe.store", require "sxe.template"
local jobs, posts, users = require "jobs", require "posts", require "users"

local LOGINS, FILE_MAX = 10, 5 << 20 -- logins of an address in ten minutes
local POLICY = "default-src 'none'; connect-src 'self'; img-src 'self'; script-src 'self'; style-src 'self'; " ..
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

-- All processes share the store, the dict, the pool of jobs and the folder of files.
local data = arg[1] or os.getenv "STATE_DIRECTORY" or "./data"
assert(file.mkdir(data .. "/files", { parents = true }))
local db = assert(store.open(data .. "/board.store"))
local memory = assert(dict.open{ name = "board", cells = 20000, evicts = true, file = data .. "/board.dict" })
db:cas("secret", nil, crypto.random_token()) -- the first process makes it
local sessions = session.new{
  secret = db:get "secret", dict = memory, lifetime = 7 * 86400, persistent = true,
  secure = os.getenv "BOARD_SECURE" ~= nil or nil, -- a proxy in front speaks TLS
}

local accounts, board = users.new(db), posts.new(db)
local queue = jobs.open(data .. "/jobs.pool", function(id)
  local post = board:get(id) -- nil: the process that should have written it was killed
  if post then board:check_file(post, data .. "/files/" .. post.file) end
end)
local views, files = template.new{ root = "views" }, http.static(data .. "/files")
local r = http.router()

local function send_page(req, res, name, values, status)
  local s = req.ctx.session
  values.user = s:get "user"
  values.token = (values.user or values.path) and s:token() -- only a form needs one
  return views:send(res, name, values, status)
end

-- A page for a browser, JSON for the script of a page. An id, not a message, says what went wrong inside.
r:on_error(function(req, res, err)
  local message = err.status < 500 and err.message or "something went wrong: " .. req.id
  if (req.headers.accept or ""):find("text/html", 1, true) then
    return views:send(res, "error.html", { message = message }, err.status)
  end
  return { error = message }
end)

r:use(function(_, res, next)
  res.headers["Content-Security-Policy"], res.headers["Referrer-Policy"] = POLICY, "same-origin"
  return next()
end)
r:use(sessions:filter())
r:use(sessions:guard())

r:get("/", function(req, res)
  local list, seq = board:newest(50)
  return send_page(req, res, "board.html", { posts = list, seq = seq })
end)

for _, path in ipairs{ "/login", "/signup" } do
  r:get(path, function(req, res) return send_page(req, res, "login.html", { path = path }) end)
  r:post(path, function(req, res)
    if memory:add("logins of " .. req.peer, 1, 600) > LOGINS then
      error{ status = 429, message = "too many attempts: try again in ten minutes" }
    end
    local form = req:form()
    local check = path == "/login" and accounts.check or accounts.add
    local user, why, status = check(accounts, form.name or "", form.password or "")
    if not user then return send_page(req, res, "login.html", { path = path, why = why, name = form.name }, status) end
    req.ctx.session:renew()
    req.ctx.session:set("user", user)
    return res:redirect("/", 303)
  end)
end

r:post("/logout", function(req, res) req.ctx.session:destroy() res:redirect("/", 303) end)

r:post("/posts", function(req)
  local user = req.ctx.session:get "user" or error{ status = 401, message = "please log in" }
  local form <close> = multipart.read(req, { directory = data .. "/files", file_max = FILE_MAX, text_max = 2000 })
  local text, upload = form.texts.text or "", form.files.file
  if text == "" and not upload then error{ status = 422, message = "write something, or choose a file" } end
  local job = upload and queue:reserve()
  if upload then -- its end says what the bytes are, not what the client calls them
    upload.file = ("%s.%s"):format(upload.path:match "[^/]*$", posts.ending_of(upload.head))
    assert(file.rename(upload.path, data .. "/files/" .. upload.file))
  end
  local post = board:add(user, text, upload, job)
  if job then queue:submit(job) end
  form:keep()
  return 201, { id = post.id }
end)

r:get("/events", function(req, res)
  board:follow(res:sse(), tonumber(req.headers["Last-Event-ID"] or req.query.after) or 0, function(post)
    return views:render("post.html", { post = post })
  end)
end)

r:get("/files/{name}", function(req, res)
  if not posts.is_picture(req.params.name) then res.headers["Content-Disposition"] = "attachment" end
  return files:send(res, req.params.name)
end)
r:use("/static", http.static("static"))

return r
