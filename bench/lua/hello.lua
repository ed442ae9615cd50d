-- SPDX-License-Identifier: MIT
return function() return "Hello" end
