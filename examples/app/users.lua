-- SPDX-License-Identifier: MIT
-- Names and passwords. A hash takes a CPU 0.2 s, in a thread: other requests go on.

local crypto, json = require "sxe.crypto", require "sxe.json"
local NOBODY = "$scrypt$ln=15,r=8,p=3$" .. ("A"):rep(22) .. "$" .. ("A"):rep(43) -- no password has this hash
local users = {}
users.__index = users

function users.new(db) return setmetatable({ db = db }, users) end

-- The user's name, or nil, why, status.
function users:add(name, password)
  if not name:find "^%a[%w_-]*$" or #name > 32 then return nil, "a name has up to 32 letters and digits", 422 end
  if #password < 10 or #password > 1000 then return nil, "a password has at least 10 characters", 422 end
  local user = { name = name, hash = assert(crypto.hash_password(password)) }
  local made, why = self.db:cas("user:" .. name:lower(), nil, json.encode(user))
  if made == nil then error(why) end
  if not made then return nil, "this name is taken", 409 end
  return name
end

-- A name that nobody has takes as long as a wrong password, so the time does not tell them apart.
function users:check(name, password)
  local text = #name <= 32 and self.db:get("user:" .. name:lower())
  local user = text and json.decode(text) or { hash = NOBODY }
  if crypto.verify_password(password:sub(1, 1000), user.hash) then return user.name end
  return nil, "the name or the password is wrong", 401
end

return users
