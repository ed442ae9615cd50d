-- SPDX-License-Identifier: MIT
return function(req) return req:body() end
