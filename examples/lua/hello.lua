-- SPDX-License-Identifier: MIT
-- The value that a handler returns is the reply:   sxe-httpd --lua examples/lua/hello.lua

return function()
  return "Hello, World!\n"
end
