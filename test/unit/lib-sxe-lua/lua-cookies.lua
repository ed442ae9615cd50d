-- SPDX-License-Identifier: MIT
-- For lua-client.lua: tests of cookie jars, without a server. Returns a function that raises an error if one fails.
local client = require "sxe.client"

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal, fails = checks.equal, checks.fails

-- The URL of a reply, its Set-Cookie, the URL of a later request, and the cookies that are sent with that request.
local TABLE <const> = {
  { "http://a.example/", "n=1", "http://a.example/x", "n=1" },
  { "http://a.example/", " n = 1 2 ; Path = / ", "http://a.example:8080/x?y", "n=1 2" },
  { "http://a.example/", "n=", "http://a.example/", "n=" },
  { "http://a.example/", "n=a=b", "http://A.example/", "n=a=b" },
  { "http://a.example/", "n=1", "http://b.a.example/" },                       -- its host only
  { "http://a.example/", "n=1; Domain=a.example", "http://b.a.example/", "n=1" },
  { "http://b.a.example/", "n=1; domain=.A.example", "http://c.a.example/", "n=1" },
  { "http://b.a.example/", "n=1; domain=.A.example", "http://a.example/", "n=1" },
  { "http://a.example/", "n=1; Domain=a.example", "http://ba.example/" },
  { "http://a.example/", "n=1; Domain=", "http://a.example/", "n=1" },
  { "http://localhost/", "n=1; Domain=localhost", "http://localhost/", "n=1" },
  { "http://localhost/", "n=1; Domain=localhost", "http://a.localhost/" },
  { "http://co.uk/", "n=1; Domain=co.uk", "http://a.co.uk/" },
  { "http://1.2.3.4/", "n=1; Domain=1.2.3.4", "http://1.2.3.4/", "n=1" },
  { "http://1.2.3.4/", "n=1; Domain=1.2.3.4", "http://0.1.2.3.4/" },
  { "http://[::1]/", "n=1", "http://[::1]/", "n=1" },
  { "http://a.example/x/y/z", "n=1", "http://a.example/x/y", "n=1" },          -- the path of its request
  { "http://a.example/x/y/z", "n=1", "http://a.example/x/yy" },
  { "http://a.example/x/y/z?q=/a", "n=1", "http://a.example/x/" },
  { "http://a.example/x", "n=1; Path=relative", "http://a.example/", "n=1" },
  { "http://a.example/", "n=1; Path=/x/", "http://a.example/x/y", "n=1" },
  { "http://a.example/", "n=1; Path=/x/", "http://a.example/x" },
  { "https://a.example/", "n=1; Secure", "https://a.example/", "n=1" },
  { "https://a.example/", "n=1; SECURE; HttpOnly; SameSite=Lax", "http://a.example/" },
  { "https://a.example/", "__Secure-n=1; Secure", "https://a.example/", "__Secure-n=1" },
  { "https://a.example/", "__Host-n=1; Secure; Path=/", "https://a.example/", "__Host-n=1" },
  { "http://a.example/", "n=1; Max-Age=100; Expires=Thu, 01 Jan 1970 00:00:01 GMT", "http://a.example/", "n=1" },
  { "http://a.example/", "n=1; Max-Age=x", "http://a.example/", "n=1" },
  { "http://a.example/", "n=1; Max-Age=0", "http://a.example/" },
  { "http://a.example/", "n=1; Max-Age=-1", "http://a.example/" },
  { "http://a.example/", "n=1; Max-Age=" .. ("9"):rep(99), "http://a.example/", "n=1" },
  { "http://a.example/", "n=1; Expires=Thu, 01 Jan 1970 00:00:01 GMT", "http://a.example/" },
  { "http://a.example/", "n=1; Expires=Thursday, 01-Jan-71 00:00:01 GMT", "http://a.example/" },
  { "http://a.example/", "n=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT", "http://a.example/", "n=1" },
  { "http://a.example/", "n=1; Expires=no date", "http://a.example/", "n=1" },
}

local REFUSED <const> = {
  { "http://a.example/", "no name", "has no name" }, { "http://a.example/", "=1", "has no name" },
  { "http://a.example/", "", "has no name" }, { "http://a.example/", "n=1\r\nX: y", "a control character" },
  { "http://a.example/", "n=" .. ("x"):rep(4096), "more than 4096 bytes" },
  { "http://a.example/", "n=1; Domain=b.example", "another domain: b.example" },
  { "http://a.example/", "n=1; Domain=b.a.example", "another domain" },
  { "http://a.example/", "n=1; Domain=example", "another domain: example" },
  { "http://a.co.uk/", "n=1; Domain=co.uk", "another domain: co.uk" },
  { "http://a.co.uk./", "n=1; Domain=co.uk.", "another domain: co.uk." },
  { "http://a.example./", "n=1; Domain=example.", "another domain: example." },
  { "http://1.2.3.4/", "n=1; Domain=3.4", "another domain: 3.4" },
  { "http://a.example/", "n=1; Secure", "did not come by https" },
  { "https://a.example/", "__Secure-n=1", "as its prefix promises" },
  { "https://a.example/", "__Host-n=1; Secure; Path=/; Domain=a.example", "as its prefix promises" },
  { "https://a.example/", "__SECURE-n=1", "as its prefix promises" },
  { "http://a.example/", "__SeCuRe-n=1", "as its prefix promises" },
  { "https://a.example/", "__HOST-n=1; Path=/", "as its prefix promises" },
  { "https://a.example/", "__hoSt-n=1; Secure", "as its prefix promises" },
  { "https://a.example/", "__Host-n=1; Secure; Path=/x", "as its prefix promises" },
  { "nonsense", "n=1", "not a URL" },
}

-- Dates as servers write them, in seconds since 1970; false: the text is no date.
local DATES <const> = {
  ["Sun, 06 Nov 1994 08:49:37 GMT"] = 784111777, ["Sunday, 06-Nov-94 08:49:37 GMT"] = 784111777,
  ["Sun Nov  6 08:49:37 1994"] = 784111777, ["29 Feb 2000 00:00:00"] = 951782400, ["1:2:3 1 jan 69"] = 3124227723,
  ["30 Apr 2000 24:00:00"] = false, ["30 Apr 2000 00:60:00"] = false, ["30 Apr 2000 00:00:60"] = false,
  ["32 Apr 2000 00:00:00"] = false, ["0 Apr 2000 00:00:00"] = false, ["30 Apr 1600 00:00:00"] = false,
  ["30 Apr 2000"] = false, ["Apr 2000 00:00:00"] = false, ["30 2000 00:00:00"] = false, ["30 Apr 00:00:00"] = false,
}

local function header_after(from, text, to)
  local jar = client.jar()
  assert(jar:set(from, text))
  return jar:header(to)
end

local function try_limits()
  local jar = client.jar()
  for i = 1, 60 do assert(jar:set("http://a.example/", ("n%d=%d"):format(i, i))) end
  equal(#jar:list(), 50)
  equal(jar:list()[1].name, "n11") -- the oldest were removed
  for i = 1, 1100 do assert(jar:set(("http://h%d.example/"):format(i), "n=1")) end
  equal(#jar:list(), 1000)
  equal(jar:header "http://h1.example/", nil)
  jar:clear()
  equal(#jar:list(), 0)
  for i = 1, 20 do assert(jar:set("http://a.example/", ("n%d=%s"):format(i, ("x"):rep(4000)))) end
  equal(#jar:header "http://a.example/" <= 32768, true)
end

-- RFC 6265bis, 5.7.
local function try_secure_limits()
  local jar = client.jar()
  assert(jar:set("https://a.example/", "id=1; Secure; Path=/"))
  for i = 1, 60 do assert(jar:set("http://a.example/", ("n%d=1"):format(i))) end
  equal(jar:list()[1].name .. jar:list()[2].name .. #jar:list(), "idn1250")
  for i = 1, 2000 do assert(jar:set(("http://h%d.example/"):format(i), "n=1")) end
  equal(jar:list()[1].name .. #jar:list(), "id1000")
  jar:clear()
  for i = 1, 49 do assert(jar:set("https://a.example/", ("s%d=1; Secure"):format(i))) end
  assert(jar:set("http://a.example/", "n=1"))
  assert(jar:set("https://a.example/", "s50=1; Secure"))
  equal(jar:header "http://a.example/", nil)
  fails("full of secure cookies", jar:set("http://a.example/", "n=1"))
  assert(jar:set("https://a.example/", "n=1"))
  equal(jar:list()[1].name .. jar:list()[50].name .. #jar:list(), "s2n50")
  for i = 1, 950 do assert(jar:set(("https://h%d.example/"):format(i), "s=1; Secure")) end
  assert(jar:set("http://b.example/", "m=1"))
  equal(jar:header "https://a.example/":find("n=1", 1, true), nil)
  assert(jar:set("https://b.example/", "s=1; Secure"))
  equal(#jar:list(), 1000)
  fails("full of secure cookies", jar:set("http://b.example/", "m=1"))
  assert(jar:set("https://b.example/", "m=1"))
  equal(jar:list()[1].name .. #jar:list(), "s31000")
end

local function try_time()
  local jar = client.jar()
  assert(jar:set("http://a.example/", "n=1; Max-Age=1000"))
  equal(math.type(jar:list()[1].expires), "integer")
  jar.all[1].expires = 1
  equal(jar:header "http://a.example/", nil)
  equal(#jar:list(), 0)
  assert(jar:set("http://a.example/", "m=1")) -- expired cookies are removed first
  equal(#jar.all, 1)
  assert(jar:set("http://a.example/", "m=2"))
  equal(jar:header "http://a.example/", "m=2")
  assert(jar:set("http://a.example/", "m=3; Max-Age=0"))
  equal(#jar.all, 0)
  for text, seconds in pairs(DATES) do
    jar:clear()
    assert(jar:set("http://a.example/", "n=1; Max-Age=9"))
    assert(jar:set("http://a.example/", "n=1; Expires=" .. text))
    if seconds == false then
      equal(jar:list()[1].expires, nil)
    elseif seconds < os.time() then
      equal(#jar.all, 0)
    else
      equal(jar:list()[1].expires, seconds)
    end
  end
end

local function try_order()
  local jar = client.jar()
  assert(jar:set("https://a.example/", "a=1; Secure; Domain=a.example"))
  assert(jar:set("https://a.example/", "b=2; Path=/x/y"))
  assert(jar:set("https://a.example/", "c=3; Path=/x/z"))
  assert(jar:set("https://a.example/", "d=4; Path=/x/y"))
  equal(jar:header "https://a.example/x/y", "b=2; d=4; a=1")
  fails("a secure cookie", jar:set("http://a.example/", "a=5"))
  fails("a secure cookie", jar:set("http://b.a.example/", "a=5; Domain=a.example"))
  assert(jar:set("http://a.example/", "e=5"))
  fails("not a URL", jar:header "nonsense")
  local one = jar:list()[1]
  equal(one.name .. one.value .. one.domain .. one.path .. tostring(one.secure) .. tostring(one.host_only),
    "a1a.example/truefalse")
end

-- Random texts never raise an error, and never set a cookie for another host.
local function try_anything()
  local parts = { "n", "=", ";", " ", "Domain", "Path", "/", "Max-Age", "Expires", "Secure", ".", "example", "a.example", "1",
    ":", "-", "Jan", "2030", "\0", "\255", "[", "%" }
  local jar = client.jar()
  for _ = 1, 3000 do
    local text = ""
    for _ = 1, math.random(12) do text = text .. parts[math.random(#parts)] end
    jar:set("http://a.example/", text)
  end
  equal(jar:header "http://b.example/", nil)
  equal(jar:header "http://example/", nil)
end

return function()
  for i, row in ipairs(TABLE) do
    local got = header_after(row[1], row[2], row[3])
    if got ~= row[4] then error(("row %d: %s, not %s"):format(i, got, row[4])) end
  end
  for _, row in ipairs(REFUSED) do fails(row[3], client.jar():set(row[1], row[2])) end
  try_limits()
  try_secure_limits()
  try_time()
  try_order()
  try_anything()
end
