-- SPDX-License-Identifier: MIT
-- For test-crypto-key.c: keys in PEM, and what they sign, beside the vectors of the standards.

local crypto, encoding = require "sxe.crypto", require "sxe.encoding"
local unhex, decode = encoding.decode_hex, encoding.decode_base64
local url = { url = true }
local pems = dofile "test/unit/lib-sxe-crypto/crypto-pems.lua"

local function fails(text, f, ...)
  local good, why = pcall(f, ...)
  assert(not good and why:find(text, 1, true), why)
end

-- ---- DER of keys whose numbers a standard gives ----

local function tagged(tag, text)
  local length = #text < 128 and string.char(#text) or string.pack(">B I2", 0x82, #text)
  return string.char(tag) .. length .. text
end

local function public_pem(algorithm, bits)
  local der = tagged(0x30, tagged(0x30, algorithm) .. tagged(0x03, "\0" .. bits))
  return "-----BEGIN PUBLIC KEY-----\n" .. encoding.encode_base64(der) .. "\n-----END PUBLIC KEY-----\n"
end

local RSA <const> = unhex "06092a864886f70d0101010500"
local P256 <const> = unhex "06072a8648ce3d020106082a8648ce3d030107"
local P384 <const> = unhex "06072a8648ce3d020106052b81040022"
local ED25519 <const> = unhex "06032b6570"

local function rsa_pem(n)
  return public_pem(RSA, tagged(0x30, tagged(0x02, "\0" .. decode(n, url)) .. tagged(0x02, "\1\0\1")))
end

-- ---- RFC 7515, A.2 (RS256) and A.3 (ES256) ----

local PAYLOAD <const> = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
local joes = {
  rsa = rsa_pem("ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SF"
    .. "d2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2"
    .. "R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9g"
    .. "b54h4FRWyuXpoQ"),
  p256 = public_pem(P256, "\4" .. decode("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", url)
    .. decode("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", url)),
}
local tokens = {
  rsa = "eyJhbGciOiJSUzI1NiJ9." .. PAYLOAD .. ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc"
    .. "_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Q"
    .. "e7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqV"
    .. "t5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
  p256 = "eyJhbGciOiJFUzI1NiJ9." .. PAYLOAD .. ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJq"
    .. "PP3-Kg6NU1Q",
}
for kind, token in pairs(tokens) do
  local text, signature = token:match "^(.*)%.(.*)$"
  local options = kind == "rsa" and { pkcs1 = true } or { raw = true }

  assert(crypto.public_key(joes[kind]):verify(text, decode(signature, url), options), kind)
  assert(not crypto.public_key(joes[kind]):verify(text .. "x", decode(signature, url), options), kind)
  assert(not crypto.public_key(joes[kind]):verify(text, decode(signature, url)), kind)
end

-- ---- RFC 6979, A.2.6: P-384 with "sample" ----

local p384 = crypto.public_key(public_pem(P384, "\4" .. unhex("ec3a4e415b4e19a4568618029f427fa5da9a8bc4ae92e02e06aae5286b300c64"
  .. "def8f0ea9055866064a254515480bc138015d9b72d7d57244ea8ef9ac0c621896708a59367f9dfb9f54ca84b3f1c9db1288b231c3ae0d4fe7344"
  .. "fd2533264720")))
assert(p384:type() == "p-384")
assert(p384:verify("sample", unhex("94edbb92a5ecb8aad4736e56c691916b3f88140666ce9fa73d64c4ea95ad133c81a648152e44acf96e36dd1e"
  .. "80fabe4699ef4aeb15f178cea1fe40db2603138f130e740a19624526203b6351d0a3a94fa329c145786e679e7b82c71a38628ac8"),
  { raw = true }))

-- ---- RFC 8032, 7.1, TEST 1, and RFC 8037, A.4: Ed25519 ----

local ed25519 = crypto.private_key(pems.ed25519)
assert(ed25519:public():gsub("\n", "") == public_pem(ED25519, unhex
  "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"):gsub("\n", ""))
assert(encoding.encode_hex(ed25519:sign "") == "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
  .. "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b")
assert(encoding.encode_base64(ed25519:sign "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc", url)
  == "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")

-- ---- Each kind signs, and each bit of a signature counts ----

local kinds = { rsa = "rsa", p256 = "p-256", sec1 = "p-256", p384 = "p-384", ed25519 = "ed25519" }
-- The key, the kind of signature, its length if it has one, options. Signatures of one kind are good for each other.
local manners = {
  { "rsa", "PS256", 256 }, { "rsa", "PS512", 256, { digest = "sha512" } },
  { "rsa", "PS256", 256, { pkcs1 = false, digest = "sha256" } }, { "rsa", "RS256", 256, { pkcs1 = true } },
  { "rsa", "RS384", 256, { pkcs1 = true, digest = "sha384" } },
  { "p256", "ES256 DER", nil, {} }, { "sec1", "ES256 DER" }, { "p256", "ES256", 64, { raw = true } },
  { "p384", "ES384 DER" }, { "p384", "ES384", 96, { raw = true } },
  { "ed25519", "EdDSA", 64 }, { "ed25519", "EdDSA", 64, {} },
}
local texts = { "", "a text", ("x"):rep(100000), "a\0b" }

for i, manner in ipairs(manners) do
  local pem, class, size, options = table.unpack(manner, 1, 4)
  local private = crypto.private_key(pems[pem])
  local public = crypto.public_key(private:public())

  assert(private:type() == kinds[pem] and public:type() == kinds[pem] and public:public() == private:public())
  for _, text in ipairs(texts) do
    local signature = private:sign(text, options)

    assert(not size or #signature == size)
    assert(public:verify(text, signature, options) and private:verify(text, signature, options))
    assert(not public:verify(text .. " ", signature, options) and not public:verify(text, "", options))
    assert(not public:verify(text, signature .. "\0", options) and not public:verify(text, signature:sub(1, -2), options))
  end
  local signature = private:sign("a text", options)
  for at = 1, #signature do
    local other = string.char(signature:byte(at) ~ (1 << (at + i) % 8))
    assert(not public:verify("a text", signature:sub(1, at - 1) .. other .. signature:sub(at + 1), options))
  end
  for length = 0, #signature - 1 do assert(not public:verify("a text", signature:sub(1, length), options)) end
  for _, other in ipairs(manners) do
    local key = crypto.private_key(pems[other[1]])
    assert(key:verify("a text", signature, other[4]) == (other[2] == class), class .. " " .. other[2])
  end
  fails("a private key expected", public.sign, public, "a", options)
  assert(public:close() == nil and public:close() == nil)
  fails("the key is closed", public.verify, public, "a", signature, options)
  fails("the key is closed", public.type, public)
  fails("the key is closed", public.public, public)
end
assert(not crypto.private_key(pems.p256):verify("", ("\0"):rep(64), { raw = true }))
assert(not crypto.private_key(pems.p256):verify("", ("\255"):rep(64), { raw = true }))

-- ---- Passwords ----

assert(crypto.private_key(pems.encrypted, "secret"):public() == crypto.private_key(pems.p256):public())
assert(crypto.private_key(pems.p256, "not needed"))
for _, password in ipairs{ "Secret", "", "secre", ("x"):rep(5000), false } do
  local key, why = crypto.private_key(pems.encrypted, password or nil)
  assert(key == nil and why == "the PEM has no private key, or the key needs another password")
end

-- ---- What is no key ----

local function refuses(text, f, pem)
  local key, why = f(pem)
  assert(key == nil and why:find(text, 1, true), why)
end

for _, kind in ipairs{ "p521", "x25519", "short" } do
  refuses("another kind of key; there are RSA with 2048 to 8192 bits, P-256,", crypto.private_key, pems[kind])
end
for _, pem in ipairs{ "", "x", pems.rsa:sub(1, 900), crypto.private_key(pems.rsa):public(), (pems.p256:gsub("[A-Z]", "A")) } do
  refuses("the PEM has no private key", crypto.private_key, pem)
end
for _, pem in ipairs{ "", pems.p256, pems.encrypted, (joes.p256:gsub("D2x", "D3x")), joes.rsa:sub(1, -30) } do
  refuses("the PEM has no public key", crypto.public_key, pem)
end
for at = 1, #joes.p256, 3 do -- whatever is changed, a key of a known kind comes of it, or none
  local key = crypto.public_key(joes.p256:sub(1, at - 1) .. "A" .. joes.p256:sub(at + 1))
  assert(not key or not key:verify("a", ("\1"):rep(64), { raw = true }))
end

-- ---- Wrong arguments ----

local rsa, p256 = crypto.private_key(pems.rsa), crypto.private_key(pems.p256)
assert(select(2, crypto.public_key(("x"):rep(65537))) == "the text is longer than 65536 bytes, so it is no PEM of a key")
fails("string expected, got no value", crypto.private_key)
fails("string expected, got table", crypto.private_key, pems.rsa, {})
fails("key:sign has no option 'raw'", rsa.sign, rsa, "a", { raw = true })
fails("key:verify has no option 'digest'", p256.verify, p256, "a", "b", { digest = "sha256" })
fails("key:sign has no option 'pkcs1'", ed25519.sign, ed25519, "a", { pkcs1 = true })
fails("raw: true or false expected, got string", p256.sign, p256, "a", { raw = "yes" })
fails("key:sign: no digest 'sha1'; signatures have sha256, sha384 and sha512", rsa.sign, rsa, "a", { digest = "sha1" })
fails("digest: a string expected, got number", rsa.sign, rsa, "a", { digest = 1 })
fails("string expected, got no value", rsa.sign, rsa)
fails("string expected, got no value", rsa.verify, rsa, "a")
fails("sxe.crypto.key expected", rsa.verify, crypto.new_digest "md5", "a", "b")
assert(getmetatable(rsa) == false and rsa.none == nil)
