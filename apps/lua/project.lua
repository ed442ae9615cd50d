-- SPDX-License-Identifier: MIT
--
-- sxe-lua --new DIRECTORY: a project that runs, in a new directory. NAME in the texts below is the project's name.

local about = ...
local file = require "sxe.file"
local directory = about.project
local name = directory:match "([^/]*)/*$"

local files = {
  { "app.lua", [[
-- The routes of NAME:  make run
local http, template = require "sxe.http", require "sxe.template"
local views = template.new{ root = "views" }
local r = http.router()

r:get("/", function(req, res) return views:send(res, "index.html", { name = req.query.name or "World" }) end)

r:get("/api/hello/{name}", function(req) return { hello = req.params.name } end)

r:use("/static", http.static("static", { cache_control = "max-age=60" }))

return r
]] },
  { "views/index.html", [[
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>NAME</title>
<link rel="stylesheet" href="/static/style.css">
<h1>Hello, {{ name }}!</h1>
<form><label>Your name <input name="name"></label> <button>Greet</button></form>
]] },
  { "static/style.css", [[
:root { color-scheme: light dark; font-family: system-ui, sans-serif }
body { max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
]] },
  { "test/app.lua", [[
-- Calls the routes of app.lua:  make test
local client, http = require "sxe.client", require "sxe.http"
local tap, task = require "sxe.tap", require "sxe.task"
local server = http.serve{ ip = "127.0.0.1", port = 0, handler = require "app" }

task.sleep(0) -- the server listens when the loop runs

local function get(path, query)
  return assert(client.get(("http://127.0.0.1:%d%s"):format(server.port, path), { query = query, timeout = 10 }))
end

tap.plan_tests(6)
tap.is(get("/").status, 200, "the page is found")
tap.ok(get("/").body:find("Hello, World!", 1, true), "the page greets the world")
tap.ok(get("/", { name = "<Ann>" }).body:find("Hello, &lt;Ann&gt;!", 1, true), "the page escapes a name")
tap.is(get("/api/hello/Ann"):json().hello, "Ann", "the API greets Ann")
tap.is(get("/static/style.css").headers["Cache-Control"], "max-age=60", "browsers keep the style for a minute")
tap.is(get("/nothing").status, 404, "another path is not found")
server:stop(5)
os.exit(tap.exit_status())
]] },
  { "Makefile", [[
# make: lists what to type
SXE_HTTPD ?= sxe-httpd
SXE_LUA   ?= sxe-lua
LUAROCKS  ?= luarocks
PORT      ?= 8000
ROCKS      = $(LUAROCKS) --lua-version 5.4 --tree rocks make --only-deps

help: ## list the targets
    @sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile
run: ## serve on http://127.0.0.1:$(PORT)/, and load app.lua again when it changes
    $(SXE_HTTPD) --lua app.lua --dev -p $(PORT)
test: ## run the tests
    $(SXE_LUA) test/app.lua
coverage: ## run the tests, and write the lines that ran to coverage.info, for genhtml
    rm -f coverage.info
    $(SXE_LUA) --coverage coverage.info test/app.lua
rocks: ## install the rocks of NAME-dev-1.rockspec, in the versions of luarocks.lock, into rocks/
    $(ROCKS) NAME-dev-1.rockspec
rocks-update: ## install the newest versions that the rockspec allows, and write them to luarocks.lock
    rm -rf rocks
    $(ROCKS) --pin NAME-dev-1.rockspec
rocks-list: ## list the modules that app.lua requires, and where they are
    $(SXE_LUA) --rocks app.lua

.PHONY: help run test coverage rocks rocks-update rocks-list
]] },
  { "NAME-dev-1.rockspec", [[
-- The rocks that NAME needs. Add one to the dependencies, then:  make rocks-update
rockspec_format = "3.0"
package, version = "NAME", "dev-1"
source = { url = "." }
dependencies = { "lua ~> 5.4" }
build = { type = "builtin", modules = {} }
]] },
  { "NAME.service", [[
# Copy the project to /srv/NAME, and this file to /etc/systemd/system. Then: systemctl enable --now NAME
[Unit]
Description=NAME
After=network.target

[Service]
Type=notify
WorkingDirectory=/srv/NAME
ExecStart=sxe-httpd -w auto -p 8000 --lua app.lua
ExecReload=/bin/kill -HUP $MAINPID
WatchdogSec=30
Restart=on-failure
LimitNOFILE=65536
StateDirectory=NAME

# All that the server does not need is taken away, see systemd.exec(5).
DynamicUser=yes
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
UMask=0027

[Install]
WantedBy=multi-user.target
]] },
  { ".gitignore", [[
/rocks/
/coverage.info
]] },
  { "README.md", [[
# NAME

A web application in Lua for `sxe-httpd` of libsxe.

    make run     serve on http://127.0.0.1:8000/
    make test    run the tests

| file | contents |
|---|---|
| `app.lua` | the routes |
| `views/`, `static/` | templates of pages; files that are served as they are |
| `test/app.lua` | the tests |
| `NAME-dev-1.rockspec` | the rocks that the application needs; `make rocks` installs them into `rocks/` |
| `NAME.service` | a unit of systemd |
]] },
}

local function refuse(...)
  io.stderr:write("sxe-lua: --new: ", ...)
  io.stderr:write("\n")
  os.exit(1)
end

-- The name of a rock and of a unit.
if not name:find "^%l[%l%d_-]*$" then
  refuse("'", name, "' is no name: it begins with a small letter, and has small letters, digits, '-' and '_'")
end
directory = directory:gsub("/*$", "")

local made, why = file.mkdir(directory)
if not made then refuse(why) end

for _, folder in ipairs{ "views", "static", "test" } do assert(file.mkdir(directory .. "/" .. folder)) end
for _, entry in ipairs(files) do
  local path = directory .. "/" .. entry[1]:gsub("NAME", name)
  local text = entry[2]:gsub("NAME", name)
  assert(file.write(path, entry[1] == "Makefile" and text:gsub("\n    ", "\n\t") or text))
end
print(("made %s: type  cd %s && make test run"):format(name, directory))
