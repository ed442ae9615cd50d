-- SPDX-License-Identifier: MIT
-- Users that log in, are greeted, and log out:
--   sxe-httpd -p 8000 --lua examples/lua/sessions.lua -- ./sessions.dict
--   sxe-http --scenario examples/session.lua -d 10 http://127.0.0.1:8000
return {
    cookies = true,
    data = {file = "users.csv", order = "in turn"},
    steps = {
        {path = "/login", form = {user = "{user}"}, expect_status = 204},
        {path = "/", take = {greeted = {pattern = "^Hello, (.-)!"}}},
        {path = "/?again={greeted}", pause = "10ms:50ms", name = "greet again"},
        {method = "POST", path = "/logout", expect_status = 204},
        {path = "/", name = "logged out", expect_status = 401},
    },
}
