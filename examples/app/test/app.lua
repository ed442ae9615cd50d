-- SPDX-License-Identifier: MIT
-- Uses the board as browsers do:   sxe-lua test/app.lua [DIRECTORY]   in the folder of app.lua; with URL in the
-- environment, a server that runs there.

local client, http, file = require "sxe.client", require "sxe.http", require "sxe.file"
local tap, task = require "sxe.tap", require "sxe.task"
local url, server = os.getenv "URL", nil
local picture, password = os.tmpname(), "correct horse"

if not url then server = http.serve{ ip = "127.0.0.1", port = 0, handler = require "app" } end
task.sleep(0) -- the server listens when the loop runs
url = url or "http://127.0.0.1:" .. server.port

local function ask(jar, method, path, options)
  options = options or {}
  options.method, options.url, options.cookies, options.redirects, options.timeout = method, url .. path, jar, 0, 300
  return assert(client.request(options))
end
local function token_of(jar, path)
  local body = ask(jar, "GET", path).body
  return body:match 'data%-token="([^"]+)"' or body:match 'csrf_token" value="([^"]+)"'
end

local function enter(jar, path, name, word)
  return ask(jar, "POST", path, { form = { csrf_token = token_of(jar, path), name = name, password = word } })
end

local function post(jar, token, parts)
  return ask(jar, "POST", "/posts", { multipart = parts, headers = { ["X-CSRF-Token"] = token } })
end

-- Read events until one contains the text; returns all that were read.
local function read_until(stream, text)
  local got = ""
  repeat got = got .. assert(stream:read()) until got:find(text, 1, true) and got:sub(-2) == "\n\n"
  return got
end

local ann, bob, anybody = client.jar(), client.jar(), client.jar()
local name = "ann" .. math.random(1 << 30)
tap.plan_tests(26)
tap.is(enter(ann, "/signup", name, "short").status, 422, "a short password is refused")
tap.is(enter(ann, "/signup", name, password).status, 303, "a user signs up")
tap.ok(ask(ann, "GET", "/").body:find(name, 1, true), "and is logged in")
tap.is(enter(bob, "/signup", name:upper(), password).status, 409, "a name is taken once")
tap.is(enter(bob, "/login", name, "wrong horse").status, 401, "a wrong password is refused")
tap.is(enter(bob, "/login", name, password).status, 303, "another browser logs in")
tap.is(ask(anybody, "POST", "/login", { form = { name = name } }).status, 403, "not without a token")
local token = token_of(ann, "/")
local function post_text(jar, its, text) return post(jar, its, { { name = "text", value = text } }).status end
tap.is(post_text(anybody, token_of(anybody, "/login"), "a"), 401, "a stranger cannot post")
tap.is(post_text(ann, "nonsense", "a"), 403, "a form of another site is refused")
tap.is(post_text(ann, token, ""), 422, "an empty post is refused")
tap.is(post_text(ann, token, ("x"):rep(2001)), 413, "and a long one")
local seq = ask(anybody, "GET", "/").body:match 'data%-seq="(%d+)"'
local stream = ask(anybody, "GET", "/events?after=" .. seq, { stream = true })
tap.is(post_text(ann, token, "<b>1 & 2</b>"), 201, "a user posts a text")
local event = read_until(stream, "1 &amp; 2")
tap.ok(event:find("&lt;b&gt;1 &amp; 2&lt;/b&gt;", 1, true), "it is an event, escaped")
assert(file.write(picture, "\x89PNG" .. ("picture"):rep(20000)))
local part = { name = "file", file = picture, filename = '"x".svg', type = "image/svg+xml" }
tap.is(post(bob, token_of(bob, "/"), { part }).status, 201, "a user posts a file")
event = read_until(stream, "sha256")
tap.ok(event:find("sha256 %x+<"), "its job is done, which is an event")
stream:close()
local path = event:match 'href="(/files/[^"]+)"'
tap.is(path:match "%w+$", "png", "the bytes decide what a file is, not its name")
tap.ok(ask(anybody, "GET", path).body == assert(file.read(picture)), "everybody can read the file")
local reply = ask(anybody, "GET", "/files/..%2fboard.store", { headers = { Accept = "text/html" } })
tap.ok(reply.status == 400 and reply.body:find("<h1>That did not work</h1>", 1, true), "and no other file")
assert(file.write(picture, ("x"):rep(5 * 1048576 + 1)))
tap.is(post(ann, token, { { name = "file", file = picture } }).status, 413, "a large file is refused")
assert(file.write(picture, "text"))
post(ann, token, { part })
path = ask(anybody, "GET", "/").body:match 'href="(/files/[^"]+bin)"'
tap.is(ask(anybody, "GET", path).headers["Content-Disposition"], "attachment", "other files are no pages of this site")

-- A form that no browser sends.
local function raw(text)
  local headers = { ["X-CSRF-Token"] = token, ["Content-Type"] = "multipart/form-data; boundary=B" }
  return ask(ann, "POST", "/posts", { headers = headers, body = text }).status
end
local HEAD = '--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\na\r\n'
tap.is(raw(HEAD:format "text" .. "--B--"), 201, "the last line of a form may have no end")
tap.is(raw(HEAD:format 'file"; filename="a'), 400, "a form that ends early is refused")
tap.is(raw(HEAD:gsub("name=", "n=") .. "--B--"), 400, "and a part without a name")
tap.is(raw(HEAD:rep(101) .. "--B--"), 413, "and one with too many parts")

tap.is(ask(ann, "POST", "/logout", { form = { csrf_token = token } }).status, 303, "a user logs out")
repeat reply = enter(bob, "/login", "nobody", "x") until reply.status ~= 401
tap.is(reply.status, 429, "who tries many passwords has to wait")

os.remove(picture)
if server then server:stop(5) end
os.exit(tap.exit_status())
