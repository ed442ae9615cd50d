-- SPDX-License-Identifier: MIT
-- Each address has 10 requests in 10 seconds:   sxe-httpd --lua examples/lua/rate-limit.lua

local pool = require "sxe.pool"
local limit, period = 10, 10
local client_of, clients = {}, nil

-- Ten thousand addresses at once; each is forgotten 10 s after it came.
clients = pool.open{
  name = "clients", count = 10000, states = { "free", "seen" },
  fields = { address = "char[45]", requests = "u32" },
  timeouts = { seen = period },
  on_timeout = function(client)
    client_of[client.address] = nil
    clients:move(client, "free")
  end,
}

local function find_client(address)
  local client = client_of[address]

  if not client then
    client = clients:take("free", "seen") or error{ status = 503 }
    client.address, client_of[address] = address, client
  end
  return client
end

return function(req, res)
  local client = find_client(req.peer)

  if clients:add(client, "requests") > limit then
    res.headers["Retry-After"] = math.max(1, math.ceil(period - client.age))
    return 429
  end
  return string.format("%d left\n", limit - client.requests)
end
