-- SPDX-License-Identifier: MIT
-- For test-crypto-module.c: the results of sxe.crypto beside the vectors of the standards, and beside references that
-- follow the text of the RFCs and use crypto.digest alone.

local crypto, encoding = require "sxe.crypto", require "sxe.encoding"
local hex, unhex = encoding.encode_hex, encoding.decode_hex
local random = math.random
math.randomseed(22)

local function fails(text, f, ...)
  local good, why = pcall(f, ...)
  assert(not good and why:find(text, 1, true), why)
end

local function some_bytes(most)
  return crypto.random_bytes(random(0, most))
end

-- ---- Digests: FIPS 180-4, FIPS 202, RFC 7693, RFC 1321, each of "abc" ----

local digests = {
  md5 = "900150983cd24fb0d6963f7d28e17f72", sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d",
  sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  sha384 = "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
  sha512 = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
    .. "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
  ["sha3-256"] = "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
  ["sha3-384"] = "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25",
  ["sha3-512"] = "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e"
    .. "10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
  blake2b = "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
    .. "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
  blake2s = "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982",
}
local blocks = { md5 = 64, sha1 = 64, sha256 = 64, sha384 = 128, sha512 = 128, ["sha3-256"] = 136, ["sha3-384"] = 104,
                 ["sha3-512"] = 72, blake2b = 128, blake2s = 64 }

local function hmac_of(name, key, text)
  local function with(byte)
    return (key:gsub(".", function(one) return string.char(one:byte() ~ byte) end))
  end

  if #key > blocks[name] then key = crypto.digest(name, key) end
  key = key .. ("\0"):rep(blocks[name] - #key)
  return crypto.digest(name, with(0x5c) .. crypto.digest(name, with(0x36) .. text))
end

for name, expected in pairs(digests) do
  assert(hex(crypto.digest(name, "abc")) == expected, name)
  for _ = 1, 40 do
    local key, text = some_bytes(200), some_bytes(300)
    local at = random(0, #text)
    local digest, hmac <close> = crypto.new_digest(name), crypto.new_hmac(name, key)

    assert(crypto.hmac(name, key, text) == hmac_of(name, key, text), name)
    assert(digest:add(text:sub(1, at)):add(""):add(text:sub(at + 1)):finish() == crypto.digest(name, text))
    assert(hmac:add(text:sub(1, at)):add(text:sub(at + 1)):finish() == crypto.hmac(name, key, text))
  end
end

-- ---- RFC 4231 ----

local hi = ("\x0b"):rep(20)
assert(hex(crypto.hmac("sha256", hi, "Hi There")) == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
assert(hex(crypto.hmac("sha512", hi, "Hi There")) == "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
  .. "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854")
assert(hex(crypto.hmac("sha256", "Jefe", "what do ya want for nothing?"))
  == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
assert(hex(crypto.hmac("sha256", ("\xaa"):rep(131), "Test Using Larger Than Block-Size Key - Hash Key First"))
  == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")

-- ---- Objects: used after the end, closed twice ----

for _, object in ipairs{ crypto.new_digest "sha256", crypto.new_hmac("sha256", "key") } do
  object:add("a", "ignored")
  fails("string expected, got no value", object.add, object)
  assert(#object:finish() == 32)
  fails("the digest is finished or closed", object.finish, object)
  fails("the digest is finished or closed", object.add, object, "a")
  local line = debug.getinfo(1, "l").currentline + 1
  local good, why = pcall(function() return (object:finish()) end)
  assert(not good and why:find(("crypto%%-values.lua:%d: the digest is finished or closed$"):format(line)), why)
  assert(object:close() == nil and object:close() == nil)
  fails("sxe.crypto.hash expected", object.add, {}, "a")
  fails("sxe.crypto.hash expected", object.close, "a")
  assert(object.none == nil and getmetatable(object) == false)
  fails("attempt to index", function() object.x = 1 end)
end
fails("no digest 'sha-1'; there are md5,", crypto.digest, "sha-1", "")
fails("no digest ''", crypto.new_digest, "")
fails("no digest 'sha256", crypto.digest, "sha256\0", "")
fails("string expected, got nil", crypto.hmac, "sha256", nil, "a")
fails("string expected, got table", crypto.digest, "sha256", {})
fails("string expected, got no value", crypto.new_hmac, "sha256")

-- ---- HKDF: RFC 5869, A.1 and A.3, and section 2 ----

local secret = ("\x0b"):rep(22)
assert(hex(crypto.hkdf("sha256", secret, { length = 42, salt = unhex "000102030405060708090a0b0c",
                                           info = unhex "f0f1f2f3f4f5f6f7f8f9" }))
  == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
assert(hex(crypto.hkdf("sha256", secret, { length = 42 }))
  == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")

local function hkdf_of(name, key, salt, info, length)
  local prk, block, all, i = crypto.hmac(name, salt, key), "", "", 0

  while #all < length do
    i = i + 1
    block = crypto.hmac(name, prk, block .. info .. string.char(i))
    all = all .. block
  end
  return all:sub(1, length)
end

for i = 1, 60 do
  local key, salt, info, length = some_bytes(60), some_bytes(60), some_bytes(60), random(1, 300)
  local name = i % 2 == 0 and "sha256" or "sha512"

  assert(crypto.hkdf(name, key, { salt = salt, info = info, length = length }) == hkdf_of(name, key, salt, info, length))
end
assert(#crypto.hkdf("sha1", "x") == 20 and #crypto.hkdf("sha1", "x", { length = 20 * 255 }) == 5100)
fails("length: an integer from 1 to 5100 expected", crypto.hkdf, "sha1", "x", { length = 5101 })
fails("length: an integer from 1 to 5100 expected, got 0", crypto.hkdf, "sha1", "x", { length = 0 })
fails("length: an integer from 1 to 5100 expected, got string", crypto.hkdf, "sha1", "x", { length = "20" })
fails("length: an integer", crypto.hkdf, "sha1", "x", { length = 1.5 })
fails("length: an integer", crypto.hkdf, "sha1", "x", { length = "9" })
fails("salt: a string expected, got number", crypto.hkdf, "sha1", "x", { salt = 9 })
fails("crypto.hkdf has no option 'slat'", crypto.hkdf, "sha1", "x", { slat = "" })
fails("crypto.hkdf has no option '1'", crypto.hkdf, "sha1", "x", { "" })
fails("table expected, got string", crypto.hkdf, "sha1", "x", "y")
fails("info: at most 32768 bytes expected", crypto.hkdf, "sha1", "x", { info = ("i"):rep(32769) })
assert(#crypto.hkdf("sha1", "x", { info = ("i"):rep(32768) }) == 20)

-- ---- PBKDF2: RFC 6070 ----

for _, case in ipairs{
  { "password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6" },
  { "password", "salt", 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957" },
  { "password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1" },
  { "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096,
    "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038" },
  { "pass\0word", "sa\0lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3" },
} do
  assert(hex(crypto.pbkdf2("sha1", case[1], case[2], { rounds = case[3], length = #case[4] // 2 })) == case[4])
end
assert(#crypto.pbkdf2("sha256", "", "", { rounds = 1 }) == 32)
fails("rounds: an integer from 1 to 10000000", crypto.pbkdf2, "sha256", "", "", { rounds = 1 << 40 })
fails("length: an integer from 1 to 1024", crypto.pbkdf2, "sha256", "", "", { length = 1025 })
fails("at most 1048576 bytes", crypto.pbkdf2, "sha256", ("x"):rep((1 << 20) + 1), "")
fails("at most 1048576 bytes", crypto.pbkdf2, "sha256", "", ("x"):rep((1 << 20) + 1))

-- ---- scrypt: RFC 7914, 12; the fourth vector takes 1 GiB, which is refused ----

for _, case in ipairs{
  { "", "", 16, 1, 1, "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
    .. "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906" },
  { "password", "NaCl", 1024, 8, 16, "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
    .. "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640" },
  { "pleaseletmein", "SodiumChloride", 16384, 8, 1, "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
    .. "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887" },
} do
  local options = { n = case[3], r = case[4], p = case[5], length = 64 }
  assert(hex(crypto.scrypt(case[1], case[2], options)) == case[6])
end
assert(#crypto.scrypt("", "", { n = 2 }) == 32)
fails("n * r: at most 1048576", crypto.scrypt, "pleaseletmein", "SodiumChloride", { n = 1048576, p = 1 })
fails("n: a power of 2 from 2", crypto.scrypt, "", "", { n = 1 })
fails("n: a power of 2 from 2", crypto.scrypt, "", "", { n = 1000 })
fails("n: at most 32768 expected if r is 1", crypto.scrypt, "", "", { n = 65536, r = 1, p = 1 })
fails("n: an integer from 1 to 1048576", crypto.scrypt, "", "", { n = 1 << 21 })
fails("n * r * p: at most 4194304", crypto.scrypt, "", "", { n = 131072, p = 5 })
fails("p * r: at most 65536", crypto.scrypt, "", "", { n = 2, r = 524288, p = 1 })
fails("p * r: at most 65536", crypto.scrypt, "", "", { n = 2, r = 1, p = 1000000 })
assert(#crypto.scrypt("", "", { n = 16, r = 65536, p = 1 }) == 32, "the most memory")
fails("length: an integer from 1 to 1024", crypto.scrypt, "", "", { length = 1025 })
fails("crypto.scrypt has no option 'N'", crypto.scrypt, "", "", { N = 2 })
fails("at most 1048576 bytes", crypto.scrypt, ("x"):rep((1 << 20) + 1), "")
fails("at most 1048576 bytes", crypto.scrypt, "", ("x"):rep((1 << 20) + 1))

local cheap = { n = 16, r = 1, p = 2 }
local hash = crypto.hash_password("secret\0word", cheap)
assert(hash:find "^%$scrypt%$ln=4,r=1,p=2%$[%w+/]+%$[%w+/]+$" and hash ~= crypto.hash_password("secret\0word", cheap))
assert(crypto.verify_password("secret\0word", hash) and not crypto.verify_password("secret", hash))
local salt, digest = hash:match "([^$]+)%$([^$]+)$"
local function unpadded(text) return (encoding.encode_base64(text):gsub("=", "")) end
assert(unpadded(crypto.scrypt("secret\0word", encoding.decode_base64(salt, { pad = false }), cheap)) == digest)
for at = 1, #hash do
  local bad = hash:sub(1, at - 1) .. string.char(hash:byte(at) ~ 1) .. hash:sub(at + 1)
  -- The last digit of the salt has 4 bits that are not used, so a wrong one may be the same salt.
  assert(not crypto.verify_password("secret\0word", bad) or at == #hash - 44, bad)
  assert(not crypto.verify_password("secret\0word", hash:sub(1, at - 1) .. "*" .. hash:sub(at + 1)))
  assert(crypto.verify_password("secret\0word", hash:sub(1, at - 1)) == nil)
end
for _, text in ipairs{ "", "$2y$04$abc", hash .. "=", hash:gsub("ln=4", "ln= 4"), hash:gsub("ln=4", "ln=04"),
                       (hash:gsub("ln=4", "ln=63")), (hash:gsub("ln=4", "ln=21")), (hash:gsub("ln=4", "ln=16")), (hash:gsub("r=1", "r=0")) } do
  if type(text) == "string" then
    assert(select(2, crypto.verify_password("a", text)) == "the hash is none of crypto.hash_password, or costs too much")
  end
end
assert(crypto.hash_password("a", nil):find("$scrypt$ln=15,r=8,p=3$", 1, true) == 1)
fails("crypto.hash_password has no option 'length'", crypto.hash_password, "a", { length = 1 })
fails("string expected", crypto.verify_password, "a")

-- ---- Random values ----

assert(crypto.random_bytes(0) == "" and #crypto.random_bytes(1 << 20) == 1 << 20)
assert(crypto.random_bytes(16) ~= crypto.random_bytes(16))
fails("0 to 1048576 bytes expected", crypto.random_bytes, -1)
fails("0 to 1048576 bytes expected", crypto.random_bytes, math.maxinteger)
for number = 16, 256 do
  local token = crypto.random_token(number)
  assert(#encoding.decode_base64(token .. ("A"):rep(-#token % 4), { url = true }) >= number)
  assert(#token == (number * 8 + 5) // 6 and encoding.decode_base64(token, { url = true }))
end
assert(#crypto.random_token() == 43 and crypto.random_token() ~= crypto.random_token())
fails("16 to 256 bytes expected", crypto.random_token, 15)
fails("16 to 256 bytes expected", crypto.random_token, 257)

-- Of 20,000 characters, each of an alphabet of n comes 20,000 / n times, within six standard deviations. Were bytes only
-- taken modulo 192, a third of its characters would come twice as often; 129 refuses nearly half of all bytes.
for _, size in ipairs{ 2, 3, 10, 62, 64, 129, 192, 255, 256 } do
  local all = {}
  for i = 1, size do all[i] = string.char(i - 1) end
  local text, count = crypto.random_text(20000, table.concat(all)), {}
  for character in text:gmatch(".") do count[character] = (count[character] or 0) + 1 end
  for i = 1, size do
    local expected = 20000 / size
    assert(math.abs((count[all[i]] or 0) - expected) < 6 * expected ^ 0.5 + 1, size)
    count[all[i]] = nil
  end
  assert(#text == 20000 and next(count) == nil)
end
for length = 0, 200 do assert(crypto.random_text(length):match("^%w*$") and #crypto.random_text(length) == length) end
assert(#crypto.random_text(1 << 20, "01") == 1 << 20 and crypto.random_text(22) ~= crypto.random_text(22))
fails("0 to 1048576 characters expected", crypto.random_text, -1)
fails("0 to 1048576 characters expected", crypto.random_text, (1 << 20) + 1)
fails("number expected", crypto.random_text)
fails("2 to 256 characters expected", crypto.random_text, 1, "a")
fails("2 to 256 characters expected", crypto.random_text, 1, "")
fails("2 to 256 characters expected", crypto.random_text, 1, ("a"):rep(257))
fails("each character only once expected", crypto.random_text, 1, "abca")

-- Of 2^63 + 2^62 results a quarter of the values is drawn again: without it the lower third would come twice as often.
local low, least, most = 0, math.mininteger, math.mininteger + (3 << 62) - 1
for _ = 1, 3000 do
  local value = crypto.random_integer(least, most)
  assert(value >= least and value <= most)
  if value < least + (1 << 62) then low = low + 1 end
end
assert(low > 800 and low < 1200, low)
local seen = {}
for _ = 1, 300 do seen[crypto.random_integer(-1, 1)] = true end
assert(seen[-1] and seen[0] and seen[1] and not seen[2] and crypto.random_integer(7, 7) == 7)
assert(math.type(crypto.random_integer(math.mininteger, math.maxinteger)) == "integer")
fails("at least the first argument expected", crypto.random_integer, 2, 1)
fails("number expected, got no value", crypto.random_integer, 2)
fails("no integer representation", crypto.random_integer, 1.5, 2)

-- ---- Comparing ----

assert(crypto.equal("", "") and crypto.equal("abc", "abc") and crypto.equal("a\0b", "a\0b"))
assert(not crypto.equal("abc", "abd") and not crypto.equal("abc", "ab") and not crypto.equal("ab", "abc"))
assert(not crypto.equal("", "a") and not crypto.equal("a", "") and not crypto.equal("a\0b", "a\0c"))
fails("string expected, got nil", crypto.equal, nil, nil)

-- ---- Sealing: the GCM specification's test cases 4 and 16, RFC 8439, 2.8.2 ----

local PLAIN <const> = unhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
  .. "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")
local AAD <const> = unhex "feedfacedeadbeeffeedfacedeadbeefabaddad2"
local half, nonce = unhex "feffe9928665731c6d6a8f9467308308", unhex "cafebabefacedbaddecaf888"
assert(hex(crypto.seal_with_nonce(half, nonce, PLAIN, { aad = AAD, algorithm = "aes-128-gcm" }))
  == "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac97"
  .. "3d58e0915bc94fbc3221a5db94fae95ae7121a47")
assert(hex(crypto.seal_with_nonce(half .. half, nonce, PLAIN, { aad = AAD }))
  == "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0a"
  .. "bcc9f66276fc6ece0f4e1768cddf8853bb2d551b")
local sunscreen = crypto.seal_with_nonce(unhex "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
  unhex "070000004041424344454647", "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
  .. "future, sunscreen would be it.", { aad = unhex "50515253c0c1c2c3c4c5c6c7", algorithm = "chacha20-poly1305" })
assert(hex(sunscreen):find "^d31a8d34648e60db7b86afbc53ef7ec2" and hex(sunscreen):find "1ae10b594f09e26a7e902ecbd0600691$")

local key = crypto.random_bytes(32)
for _, algorithm in ipairs{ "aes-256-gcm", "aes-128-gcm", "chacha20-poly1305" } do
  local one = key:sub(1, algorithm == "aes-128-gcm" and 16 or 32)
  for i = 1, 30 do
    local text, aad = some_bytes(50), i % 2 == 0 and some_bytes(30) or nil
    local options = { aad = aad, algorithm = algorithm }
    local sealed = crypto.seal(one, text, options)

    assert(#sealed == 12 + #text + 16 and sealed ~= crypto.seal(one, text, options))
    assert(crypto.open(one, sealed, options) == text)
    assert(crypto.open_with_nonce(one, sealed:sub(1, 12), sealed:sub(13), options) == text)
    for at = 1, #sealed do -- each byte that is another one is found out
      local other = string.char(sealed:byte(at) ~ (1 << random(0, 7)))
      local opened, why = crypto.open(one, sealed:sub(1, at - 1) .. other .. sealed:sub(at + 1), options)
      assert(opened == nil and why == "forged, or sealed with another key, nonce or aad")
      assert(crypto.open(one, sealed:sub(1, at - 1), options) == nil)
    end
    assert(not crypto.open(crypto.random_bytes(#one), sealed, options))
    assert(not crypto.open(one, sealed, { aad = (aad or "") .. "x", algorithm = algorithm }))
    assert(not crypto.open_with_nonce(one, sealed:sub(1, 12), sealed:sub(13, 27), options))
  end
end
assert(crypto.open(key, crypto.seal(key, "")) == "" and crypto.open(key, "") == nil)
fails("crypto.seal: aes-256-gcm has a key of 32 bytes, not of 16", crypto.seal, half, "")
fails("crypto.open: aes-128-gcm has a key of 16 bytes, not of 32", crypto.open, key, "", { algorithm = "aes-128-gcm" })
fails("crypto.seal: no algorithm 'aes'; there are", crypto.seal, key, "", { algorithm = "aes" })
fails("crypto.seal: no algorithm '", crypto.seal, key, "", { algorithm = "aes-256-gcm\0" })
fails("crypto.seal has no option 'aad", crypto.seal, key, "", { ["aad\0"] = "" })
fails("a nonce of 12 bytes expected", crypto.seal_with_nonce, key, "short", "")
fails("a nonce of 12 bytes expected", crypto.open_with_nonce, key, ("x"):rep(13), "")
fails("crypto.seal has no option 'add'", crypto.seal, key, "", { add = "" })
fails("string expected, got no value", crypto.seal, key)
fails("string expected, got nil", crypto.seal, nil, "")
