-- SPDX-License-Identifier: MIT
-- For test-crypto-jwt.c: tokens of sxe.crypto beside those of the standards, and each way in which one can be wrong.

local crypto, encoding, json = require "sxe.crypto", require "sxe.encoding", require "sxe.json"
local pems = dofile "test/unit/lib-sxe-crypto/crypto-pems.lua"
local url = { url = true }
local secret = ("s"):rep(64)

local function fails(text, f, ...)
  local good, why = pcall(f, ...)
  assert(not good and why:find(text, 1, true), why)
end

local function refuses(text, ...)
  local claims, why = crypto.verify_jwt(...)
  assert(claims == nil and why == text, why)
end

local function encode(text) return encoding.encode_base64(text, url) end

-- A token whose parts are what they are, signed as HS256 has it.
local function make(header, claims)
  local text = encode(header) .. "." .. encode(claims)
  return text .. "." .. encode(crypto.hmac("sha256", secret, text))
end

-- ---- RFC 7515, A.1: HS256 ----

local JOE <const> = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leG"
  .. "FtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
local joes = encoding.decode_base64("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow", url)
local claims, header = crypto.verify_jwt(JOE, joes, { now = 1300819379, issuer = "joe" })
assert(claims.iss == "joe" and claims.exp == 1300819380 and claims["http://example.com/is_root"] == true)
assert(header.typ == "JWT" and header.alg == "HS256")
refuses("the token has expired", JOE, joes, { now = 1300819380 })
refuses("the token has expired", JOE, joes)
refuses("forged, or signed with another key", JOE, secret)

-- ---- Each algorithm; a key verifies its own alone ----

local cases = { { secret, "HS256" }, { secret, "HS384" }, { secret, "HS512" }, { "rsa", "RS256" }, { "rsa", "RS384" },
  { "rsa", "RS512" }, { "rsa", "PS256" }, { "rsa", "PS384" }, { "rsa", "PS512" }, { "p256", "ES256" }, { "p384", "ES384" },
  { "ed25519", "EdDSA" } }
local made = {}
local FOREVER <const> = { needs_exp = false }

for i, case in ipairs(cases) do
  local private = pems[case[1]] and crypto.private_key(pems[case[1]]) or case[1]
  local public = pems[case[1]] and crypto.public_key(private:public()) or case[1]

  case.public = public
  made[i] = crypto.sign_jwt({ sub = "ann", exp = os.time() + 60, n = { 1, 2 } }, private, { algorithm = case[2],
                                                                                            header = { kid = "k" } })
  claims, header = crypto.verify_jwt(made[i], public, { algorithm = case[2] })
  assert(claims.sub == "ann" and #claims.n == 2 and header.alg == case[2] and header.kid == "k" and header.typ == "JWT")
end
for i in ipairs(cases) do
  for _, other in ipairs(cases) do
    claims = crypto.verify_jwt(made[i], other.public, { algorithm = other[2] })
    assert((claims ~= nil) == (other == cases[i]), other[2])
  end
end
-- Without a name the key says it.
for _, kind in ipairs{ "rsa", "p256", "p384", "ed25519" } do
  local key = crypto.private_key(pems[kind])
  local token = crypto.sign_jwt({}, key)
  header = select(2, assert(crypto.verify_jwt(token, key, FOREVER)))
  assert(header.alg == ({ rsa = "RS256", p256 = "ES256", p384 = "ES384", ed25519 = "EdDSA" })[kind])
  -- A list of keys, of which one is good; and one in which none is.
  assert(crypto.verify_jwt(token, { secret, key }, FOREVER) and crypto.verify_jwt(token, { key, key }, FOREVER))
  refuses("forged, or signed with another key", token, { secret, ("t"):rep(32) }, FOREVER)
end

-- ---- The header has no say ----

local public = crypto.private_key(pems.rsa):public()
local CLAIMS <const> = '{"exp":99999999999}'
assert(crypto.verify_jwt(make('{"alg":"HS256"}', CLAIMS), secret).exp == 99999999999)
assert(crypto.verify_jwt(make(' \r\n{"alg":"HS256"}', CLAIMS), secret))
for _, alg in ipairs{ "none", "None", "HS512", "RS256", "hs256", "" } do
  refuses("the token has another algorithm than the key", make('{"alg":"' .. alg .. '"}', CLAIMS), secret)
end
refuses("the token has another algorithm than the key", make("{}", CLAIMS), secret)
refuses("the token has another algorithm than the key", make('{"alg":["HS256"]}', CLAIMS), secret)
refuses("the token has extensions (crit), which nobody knows here", make('{"alg":"HS256","crit":["b64"]}', CLAIMS), secret)
local unsigned = encode '{"alg":"none"}' .. "." .. encode(CLAIMS) .. "."
for _, case in ipairs(cases) do
  refuses("forged, or signed with another key", unsigned, case.public, { algorithm = case[2] })
end
-- The public key as the secret of an HMAC
local text = encode '{"alg":"HS256"}' .. "." .. encode(CLAIMS)
refuses("forged, or signed with another key", text .. "." .. encode(crypto.hmac("sha256", public, text)), crypto.public_key(public))
fails("PEM is no secret; give crypto.private_key(pem) or crypto.public_key(pem)", crypto.verify_jwt, JOE, public)

-- ---- What is no token; each byte counts ----

local good = make('{"alg":"HS256"}', CLAIMS)
for _, token in ipairs{ "", ".", "..", "...", "a.b", "a.b.c.d", "a.b.c.d.e", "." .. good, good .. ".", " " .. good, good .. "\n",
                        good .. "=", good:gsub("%.", "", 1), (good:gsub("^.", "+")), ("a"):rep(70000), good .. ("A"):rep(70000) } do
  refuses("no token: three parts in base64 for URLs expected", token, secret)
end
for at = 1, #good do
  for _, byte in ipairs{ "A", "_", ".", "\0", "\255", "=", string.char(good:byte(at) ~ 1), "" } do
    local other = good:sub(1, at - 1) .. byte .. good:sub(at + 1)
    if other ~= good then assert(crypto.verify_jwt(other, secret) == nil, other) end
  end
  assert(crypto.verify_jwt(good:sub(1, at - 1), secret) == nil and crypto.verify_jwt(good:sub(at + 1), secret) == nil)
end
local random = math.random
math.randomseed(7519)
for _ = 1, 3000 do -- a header and claims of anything, well signed, raise nothing
  local pieces = { "{", "}", "[", "]", '"alg"', ":", '"HS256"', ",", '"exp"', "1e99", "-1", "null", '"aud"', '"crit"', "\255", "" }
  local function some()
    local parts = { random(2) == 1 and "{" or "" }
    for i = 2, random(2, 12) do parts[i] = pieces[random(#pieces)] end
    return table.concat(parts)
  end
  local found, why = crypto.verify_jwt(make(random(2) == 1 and '{"alg":"HS256"}' or some(), some()), secret, { audience = "a" })
  assert(found == nil and type(why) == "string")
end
for _, part in ipairs{ "[]", '"x"', "7", "null", "true", " ", "{", '{"a":1}x', "\255", "[{}]" } do
  refuses("the token's header and claims must be objects of JSON", make(part, CLAIMS), secret)
  refuses("the token's header and claims must be objects of JSON", make('{"alg":"HS256"}', part), secret)
end

-- ---- Claims ----

local function checks(fault, values, options)
  local token = make('{"alg":"HS256"}', json.encode(values))
  local found, why = crypto.verify_jwt(token, secret, options)
  assert(fault and found == nil and why == fault or not fault and found, why)
end

checks("the token has no exp", {})
checks(nil, {}, FOREVER)
checks("the token has expired", { exp = 100 }, { now = 100 })
checks(nil, { exp = 100 }, { now = 99 })
checks(nil, { exp = 100.5 }, { now = 100 })
checks(nil, { exp = 100 }, { now = 109, leeway = 10 })
checks("the token has expired", { exp = 100 }, { now = 110, leeway = 10 })
checks("the token has expired", { exp = math.mininteger }, { leeway = 10 })
checks("the token has expired", { exp = 100, nbf = 0 }, FOREVER)
checks("the token is not valid yet", { exp = 200, nbf = 100 }, { now = 99 })
checks(nil, { exp = 200, nbf = 100 }, { now = 100 })
checks(nil, { exp = 200, nbf = 100 }, { now = 90, leeway = 10 })
checks("the token is not valid yet", { exp = 200, nbf = 100 }, { now = 89, leeway = 10 })
checks("the token is not valid yet", { nbf = math.maxinteger }, { leeway = 10, needs_exp = false })
for _, name in ipairs{ "exp", "nbf", "iat" } do
  for _, value in ipairs{ "100", true, json.null, {} } do
    checks(name .. " of the token is no number", { exp = 99999999999, [name] = value })
  end
end
checks(nil, { exp = 200, iat = 300 }, { now = 100 })
checks(nil, { aud = "a" }, { needs_exp = false, audience = "a" })
checks(nil, { aud = { "b", "a" } }, { needs_exp = false, audience = "a" })
for _, aud in ipairs{ "b", "", { "b" }, json.array(), { { "a" } }, { a = "a" }, true, json.null, "A", "a " } do
  checks("the token is for another audience", { aud = aud }, { needs_exp = false, audience = "a" })
  checks("the token is for an audience, and none was asked for", { aud = aud }, FOREVER)
end
checks("the token is for another audience", {}, { needs_exp = false, audience = "a" })
checks(nil, { iss = "i" }, { needs_exp = false, issuer = "i" })
checks(nil, { iss = "i" }, FOREVER)
for _, iss in ipairs{ "j", "", { "i" }, json.null } do
  checks("the token is from another issuer", { iss = iss }, { needs_exp = false, issuer = "i" })
end
checks("the token is from another issuer", {}, { needs_exp = false, issuer = "i" })

-- ---- Wrong arguments ----

local rsa = crypto.private_key(pems.rsa)
fails("crypto.sign_jwt: a table of claims expected, got nil", crypto.sign_jwt, nil, secret)
fails("crypto.sign_jwt: exp: seconds since 1970 expected, got string", crypto.sign_jwt, { exp = "1" }, secret)
fails("crypto.sign_jwt: a secret of at least 32 bytes expected, got 31", crypto.sign_jwt, {}, ("s"):rep(31))
fails("a secret of at least 64 bytes expected, got 32", crypto.sign_jwt, {}, ("s"):rep(32), { algorithm = "HS512" })
fails("a string is a secret of HS256, HS384 or HS512, not of none", crypto.sign_jwt, {}, secret, { algorithm = "none" })
fails("a key of kind rsa is not for ES256", crypto.sign_jwt, {}, rsa, { algorithm = "ES256" })
fails("a key of kind rsa is not for none", crypto.sign_jwt, {}, rsa, { algorithm = "none" })
fails("crypto.sign_jwt: a key or a secret expected, got table", crypto.sign_jwt, {}, {})
fails("sxe.crypto.key expected", crypto.sign_jwt, {}, crypto.new_digest "md5")
fails("a private key expected", crypto.sign_jwt, {}, crypto.public_key(rsa:public()))

-- What verify_jwt always refuses is not signed, and messages have no place inside the library.
local function raises(text, ...)
  local good, why = pcall(crypto.sign_jwt, ...)
  assert(not good and why:find(text, 1, true) and not why:find("sxe-crypto-jwt", 1, true), why)
end
raises("crypto.sign_jwt: claims: an object expected, got a list", { 1, 2 }, secret)
raises("crypto.sign_jwt: header: crit, which verify_jwt refuses", {}, secret, { header = { crit = { "b64" } } })
raises("crypto.sign_jwt: claims: ", { a = "\xff" }, secret)
raises("crypto.sign_jwt: header: ", {}, secret, { header = { kid = "\xed\xa0\x80" } })
raises("crypto.sign_jwt: claims: ", { a = print }, secret)
raises("crypto.sign_jwt: claims: ", { exp = 0 / 0 }, secret)
raises("bytes, and at most 65536 may be", { a = ("x"):rep(50000) }, secret)
local longest = crypto.sign_jwt({ a = ("x"):rep(49072) }, secret)
assert(#longest <= 65536 and #longest > 65500 and crypto.verify_jwt(longest, secret, FOREVER), #longest)
local closed = crypto.private_key(pems.p256)
closed:close()
raises("crypto.sign_jwt: the key is closed", {}, closed)
raises("crypto.sign_jwt: a private key expected", {}, crypto.public_key(rsa:public()))

fails("crypto.sign_jwt has no option 'kid'", crypto.sign_jwt, {}, secret, { kid = "k" })
fails("crypto.sign_jwt: header: a table expected, got string", crypto.sign_jwt, {}, secret, { header = "k" })
fails("crypto.sign_jwt: a table of options expected, got string", crypto.sign_jwt, {}, secret, "k")
fails("crypto.verify_jwt: a token expected, got nil", crypto.verify_jwt, nil, secret)
fails("crypto.verify_jwt: a key or a secret expected, got nil", crypto.verify_jwt, JOE, { nil, secret })
fails("crypto.verify_jwt: 1 to 16 keys expected, got 0", crypto.verify_jwt, JOE, {})
fails("crypto.verify_jwt: 1 to 16 keys expected, got 17", crypto.verify_jwt, JOE, table.pack(("s"):rep(17, ","):byte(1, 17)))
fails("crypto.verify_jwt has no option 'aud'", crypto.verify_jwt, JOE, secret, { aud = "a" })
fails("leeway: 0 to 3600 seconds expected", crypto.verify_jwt, JOE, secret, { leeway = 3601 })
fails("leeway: 0 to 3600 seconds expected", crypto.verify_jwt, JOE, secret, { leeway = 0 / 0 })
fails("now: seconds since 1970 expected, got nan", crypto.verify_jwt, JOE, secret, { now = 0 / 0 })
fails("leeway: a number expected, got string", crypto.verify_jwt, JOE, secret, { leeway = "60" })
