-- SPDX-License-Identifier: MIT
--
-- JSON Web Tokens (RFC 7519) in the compact form of RFC 7515: sign_jwt and verify_jwt of sxe.crypto, which get the module and
-- the function key:type().
--
--   token = base64url(header) "." base64url(claims) "." base64url(signature)
--
-- The algorithm is that of the caller's key. Nothing of a token is decoded but its signature, before that has been checked.
local crypto, kind_of = ...
local equal, hmac = crypto.equal, crypto.hmac
local error, find, ipairs, match, next, pairs, require, sub = error, string.find, ipairs, string.match, next, pairs, require, string.sub
local pcall, time, tostring, type, utf8_length = pcall, os.time, tostring, type, utf8.len

local TOKEN_MAX <const> = 65536
local KEYS_MAX <const> = 16
local LEEWAY_MAX <const> = 3600
local URL <const> = { url = true }

-- The digest of each HMAC, and the least bytes of its secret (RFC 7518, 3.2).
local SECRETS <const> = { HS256 = { "sha256", 32 }, HS384 = { "sha384", 48 }, HS512 = { "sha512", 64 } }
-- The kind of key for each algorithm, and the options of key:sign.
local SIGNATURES <const> = {
  RS256 = { "rsa", { pkcs1 = true, digest = "sha256" } }, PS256 = { "rsa", { digest = "sha256" } },
  RS384 = { "rsa", { pkcs1 = true, digest = "sha384" } }, PS384 = { "rsa", { digest = "sha384" } },
  RS512 = { "rsa", { pkcs1 = true, digest = "sha512" } }, PS512 = { "rsa", { digest = "sha512" } },
  ES256 = { "p-256", { raw = true } }, ES384 = { "p-384", { raw = true } }, EdDSA = { "ed25519" },
}
local DEFAULTS <const> = { rsa = "RS256", ["p-256"] = "ES256", ["p-384"] = "ES384", ed25519 = "EdDSA" }

-- ---- Arguments ----

local function check_options(options, types, call)
  if options == nil then return {} end
  if type(options) ~= "table" then error(call .. ": a table of options expected, got " .. type(options), 3) end
  for name, value in next, options do
    if not types[name] then error(call .. " has no option '" .. tostring(name) .. "'", 3) end
    if type(value) ~= types[name] then
      error(call .. ": " .. name .. ": a " .. types[name] .. " expected, got " .. type(value), 3)
    end
  end
  return options
end

-- Call a function of C, and return its result. Its errors are raised at a level of the caller, without a place in this
-- file.
local function run_for(call, level, f, ...)
  local good, result = pcall(f, ...)

  if not good then error(call .. ": " .. (match(tostring(result), "%((.*)%)$") or tostring(result)), level + 1) end
  return result
end

-- The algorithm of a key or secret, which the caller may have named. Errors are those of the function at a level.
local function algorithm_of(key, name, call, level)
  if type(key) == "string" then
    name = name or "HS256"
    if not SECRETS[name] then error(call .. ": a string is a secret of HS256, HS384 or HS512, not of " .. name, level) end
    if find(key, "-----BEGIN", 1, true) then
      error(call .. ": PEM is no secret; give crypto.private_key(pem) or crypto.public_key(pem)", level)
    end
    if #key < SECRETS[name][2] then
      error(call .. ": a secret of at least " .. SECRETS[name][2] .. " bytes expected, got " .. #key, level)
    end
    return name
  end
  if type(key) ~= "userdata" then error(call .. ": a key or a secret expected, got " .. type(key), level) end
  local kind = run_for(call, level, kind_of, key)

  name = name or DEFAULTS[kind]
  if not SIGNATURES[name] or SIGNATURES[name][1] ~= kind then
    error(call .. ": a key of kind " .. kind .. " is not for " .. name, level)
  end
  return name
end

local function check_times(claims)
  for _, name in ipairs{ "exp", "nbf", "iat" } do
    if claims[name] ~= nil and type(claims[name]) ~= "number" then return name end
  end
end

-- ---- Signing ----

-- Encode a part of a token, if verify_jwt could read it again.
local function encode(value, what)
  local encode_base64 = require "sxe.encoding".encode_base64
  local text = run_for("crypto.sign_jwt: " .. what, 3, require "sxe.json".encode, value)

  if sub(text, 1, 1) ~= "{" then error("crypto.sign_jwt: " .. what .. ": an object expected, got a list", 3) end
  if not utf8_length(text) then error("crypto.sign_jwt: " .. what .. ": text that is not UTF-8", 3) end
  return encode_base64(text, URL)
end

function crypto.sign_jwt(claims, key, options)
  options = check_options(options, { algorithm = "string", header = "table" }, "crypto.sign_jwt")
  if type(claims) ~= "table" then error("crypto.sign_jwt: a table of claims expected, got " .. type(claims), 2) end
  local name = algorithm_of(key, options.algorithm, "crypto.sign_jwt", 3)
  local header, wrong = { typ = "JWT" }, check_times(claims)
  local text, signature

  if wrong then error("crypto.sign_jwt: " .. wrong .. ": seconds since 1970 expected, got " .. type(claims[wrong]), 2) end
  for field, value in pairs(options.header or {}) do header[field] = value end
  header.alg = name
  if header.crit ~= nil then error("crypto.sign_jwt: header: crit, which verify_jwt refuses", 2) end
  text = encode(header, "header") .. "." .. encode(claims, "claims")
  if SECRETS[name] then
    signature = hmac(SECRETS[name][1], key, text)
  else
    signature = run_for("crypto.sign_jwt", 2, key.sign, key, text, SIGNATURES[name][2])
  end
  text = text .. "." .. require "sxe.encoding".encode_base64(signature, URL)
  if #text > TOKEN_MAX then error("crypto.sign_jwt: the token has " .. #text .. " bytes, and at most " .. TOKEN_MAX .. " may be", 2) end
  return text
end

-- ---- Verifying ----

local function is_signed_by(key, name, text, signature)
  if SECRETS[name] then return equal(hmac(SECRETS[name][1], key, text), signature) end
  return key:verify(text, signature, SIGNATURES[name][2])
end

-- The algorithm of the key that signed the text; nil: none of these keys did.
local function find_signer(keys, wanted, text, signature)
  local found

  if type(keys) ~= "table" then keys = { keys } end
  if #keys == 0 or #keys > KEYS_MAX then error("crypto.verify_jwt: 1 to " .. KEYS_MAX .. " keys expected, got " .. #keys, 3) end
  for i = 1, #keys do
    local key = keys[i]
    local name = algorithm_of(key, wanted, "crypto.verify_jwt", 4)

    if not found and is_signed_by(key, name, text, signature) then found = name end
  end
  return found
end

-- The object that a part of the token holds; nil: the part is no object.
local function decode_object(part)
  local text = require "sxe.encoding".decode_base64(part, URL)
  local value = text and find(text, "^[ \t\r\n]*{") and require "sxe.json".decode(text)

  return value or nil
end

local function is_for(audience, aud)
  if type(aud) ~= "table" then return aud == audience end
  for _, one in ipairs(aud) do
    if one == audience then return true end
  end
  return false
end

-- The reason why the claims are not valid now and for the caller; nil: they are valid.
local function find_fault(claims, options)
  local now, leeway = options.now or time(), options.leeway or 0
  local wrong = check_times(claims)

  if wrong then return wrong .. " of the token is no number" end
  if claims.exp == nil and options.needs_exp ~= false then return "the token has no exp" end
  if claims.exp and now - leeway >= claims.exp then return "the token has expired" end
  if claims.nbf and now + leeway < claims.nbf then return "the token is not valid yet" end
  if options.audience ~= nil and not is_for(options.audience, claims.aud) then return "the token is for another audience" end
  if options.audience == nil and claims.aud ~= nil then return "the token is for an audience, and none was asked for" end
  if options.issuer ~= nil and claims.iss ~= options.issuer then return "the token is from another issuer" end
end

local OPTIONS <const> = { algorithm = "string", audience = "string", issuer = "string", leeway = "number", now = "number",
  needs_exp = "boolean" }

function crypto.verify_jwt(token, key, options)
  options = check_options(options, OPTIONS, "crypto.verify_jwt")
  local leeway, now = options.leeway or 0, options.now or 0

  if type(token) ~= "string" then error("crypto.verify_jwt: a token expected, got " .. type(token), 2) end
  if not (leeway >= 0 and leeway <= LEEWAY_MAX) then
    error("crypto.verify_jwt: leeway: 0 to " .. LEEWAY_MAX .. " seconds expected", 2)
  end
  if now ~= now then error("crypto.verify_jwt: now: seconds since 1970 expected, got nan", 2) end
  local head, body, tail = match(sub(token, 1, TOKEN_MAX + 1), "^([%w_-]+)%.([%w_-]+)%.([%w_-]*)$")
  local signature = tail and require "sxe.encoding".decode_base64(tail, URL)
  local name = find_signer(key, options.algorithm, (head or "") .. "." .. (body or ""), signature or "")

  if not signature or #token > TOKEN_MAX then return nil, "no token: three parts in base64 for URLs expected" end
  if not name then return nil, "forged, or signed with another key" end
  local header, claims = decode_object(head), decode_object(body)

  if not header or not claims then return nil, "the token's header and claims must be objects of JSON" end
  if header.alg ~= name then return nil, "the token has another algorithm than the key" end
  if header.crit ~= nil then return nil, "the token has extensions (crit), which nobody knows here" end
  local fault = find_fault(claims, options)

  if fault then return nil, fault end
  return claims, header
end
