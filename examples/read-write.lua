-- SPDX-License-Identifier: MIT
-- Ten reads a write, over 30 files: sxe-http --scenario read-write.lua -d 10 http://127.0.0.1:8000/
local function is_sorted(status, headers, body)
    local last = ""
    for part in body:gmatch("(.-), ") do
        if part < last then return false, last .. " stands before " .. part end
        last = part
    end
end

return {files = 30, kinds = {
    {name = "GET", times = 10, path = "/{n}", check = is_sorted, expect_status = 200},
    {name = "POST", expect_status = 204, request = function(n)
        return wrk.format("POST", "/" .. n, nil, math.random(1000) .. ", ")
    end},
}}
