-- SPDX-License-Identifier: MIT
--
-- Tests that only root can run: `as_root.test(name, function)` is skipped, with the reason, for other users.

local as_root = {}

local id <close> = io.popen("id -u")
local is_root = id:read("l") == "0"

function as_root.test(name, run)
    test(name, function()
        if is_root then
            run()
        else
            print("skipped: " .. name .. ", because the test is not root")
        end
    end)
end

return as_root
