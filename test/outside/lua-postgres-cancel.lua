-- SPDX-License-Identifier: MIT
--
-- cancel_timeout of sxe.postgres, by docs/postgres.md, with a server that the script plays: it answers no query, and no
-- request to cancel one.

local cli = require "cli"

if wire.spawn{wire.program "sxe-lua", "-e", "require 'sxe.postgres'"}:wait(120) ~= 0 then
    print("skipped: sxe.postgres, because sxe-lua was built without libpq")
    test("a program without libpq says so", function()
        check(cli.run("sxe-lua", "-e", "require 'sxe.postgres'").errors:find("sxe.postgres", 1, true))
    end)
    return
end

-- promise: docs/postgres.md: It gives up after `cancel_timeout`, and closes the connection
test("requests to cancel a query end after their own time", function()
    equal(cli.output_of(300, {wire.program "sxe-lua", "--sockets", "100", "-e", [[
local postgres, task, tcp = require "sxe.postgres", require "sxe.task", require "sxe.tcp"

local function message(kind, text) return kind .. (">s4"):pack(("x"):rep(#text + 4)):sub(1, 4) .. text end

-- A server whose cancel requests are counted while they are open.
local function serve()
  local server = { open = 0, ended = 0 }

  server.tcp = tcp.serve("127.0.0.1", 0, { connections = 20, handler = function(conn)
    local code

    repeat
      code = (">I4"):unpack(conn:read((">I4"):unpack(conn:read(4)) - 4))
      if code == 80877103 or code == 80877104 then conn:write "N" end -- neither TLS nor GSSAPI
    until code ~= 80877103 and code ~= 80877104
    if code == 80877102 then -- CancelRequest
      server.open = server.open + 1
      conn:read(1) -- until the client gives up
      server.ended = server.ended + 1
      return
    end
    conn:write(message("R", "\0\0\0\0") .. message("K", "\0\0\0\1\0\0\0\2") .. message("Z", "I"))
    conn:read "a" -- the query, until the client closes
  end })
  return server
end

-- Time a query out at a server, so that it is asked to cancel the query.
local function cancel_at(server, cancel_timeout)
  local db <close> = postgres.new{ host = "127.0.0.1", port = server.tcp.port, user = "u", database = "d", prepare = false,
    cancel_timeout = cancel_timeout }

  print(select(2, db:query{ "SELECT 1", timeout = 0.1 }))
  while server.open == 0 do task.sleep(0.001) end
end

task.sleep(0)
local patient, short = serve(), serve()
cancel_at(patient, 1000)
cancel_at(short, 0.1)
while short.ended == 0 do task.sleep(0.001) end
print(patient.open, patient.ended, short.open, short.ended)
os.exit(0)
]]}), "timeout\tnil\tnil\ntimeout\tnil\tnil\n1\t0\t1\t1\n")
end)
