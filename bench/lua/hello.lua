-- SPDX-License-Identifier: MIT
return function() return "Hello, World!\n" end
