-- SPDX-License-Identifier: MIT
-- Names and passwords. A password's key takes a CPU 0.2 s, so a worker computes it, and other requests go on.

local crypto, encoding, json = require "sxe.crypto", require "sxe.encoding", require "sxe.json"
local worker = require "sxe.worker"
local users = {}
users.__index = users

local function derive(password, salt)
  local key = assert(worker.run(function(...) return require "sxe.crypto".pbkdf2("sha256", ...) end, password, salt))
  return encoding.encode_hex(key)
end

function users.new(db) return setmetatable({ db = db }, users) end

-- The user's name, or nil, why, status.
function users:add(name, password)
  if not name:find "^%a[%w_-]*$" or #name > 32 then return nil, "a name has up to 32 letters and digits", 422 end
  if #password < 10 or #password > 1000 then return nil, "a password has at least 10 characters", 422 end
  local salt = crypto.random_token()
  local user = json.encode{ name = name, salt = salt, key = derive(password, salt) }
  local made, why = self.db:cas("user:" .. name:lower(), nil, user)
  if made == nil then error(why) end
  if not made then return nil, "this name is taken", 409 end
  return name
end

-- A name that nobody has takes as long as a wrong password, so the time does not tell them apart.
function users:check(name, password)
  local text = #name <= 32 and self.db:get("user:" .. name:lower())
  local user = text and json.decode(text) or { salt = "none", key = "" }
  if crypto.equal(user.key, derive(password:sub(1, 1000), user.salt)) then return user.name end
  return nil, "the name or the password is wrong", 401
end

return users
