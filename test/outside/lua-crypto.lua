-- SPDX-License-Identifier: MIT
-- sxe.crypto as docs/crypto.md promises it, by processes of sxe-lua.

local cli = require "cli"

local function run(text, ...)
    return cli.output_of(120, {wire.program "sxe-lua", "-e",
        "local c, e = require 'sxe.crypto', require 'sxe.encoding'\n" .. text, ...})
end

local has_crypto = wire.spawn{wire.program "sxe-lua", "-e", "require 'sxe.crypto'"}:wait(120) == 0
if not has_crypto then
    print("skipped: sxe.crypto, because sxe-lua was built without OpenSSL")
    test("a program without OpenSSL says so", function() check(not has_crypto) end)
    return
end

-- promise: docs/crypto.md: sxe-lua and sxe-httpd have it unless they were built without OpenSSL;
test("the sandbox has no sxe.crypto", function()
    local script, http = require "script", require "http"
    for _, option in ipairs{"--dev", "--lua-sandbox"} do
        local server <close> = script.start(
            'return function(req) return tostring((pcall(require, "sxe.crypto"))) end', option)
        equal(http.ask(server, http.request "GET /").body, tostring(option == "--dev"))
    end
end)

-- promise: docs/crypto.md: hash:finish() returns the bytes and closes the object. hash:close(), or the end of a
-- <close> variable, discards the object. A later add or finish raises an error.
test("a digest in parts ends once", function()
    equal(run[[
local kept
do local h <close> = c.new_hmac("sha256", "k") kept = h:add "a" end
for _, one in ipairs{kept, c.new_digest "sha256"} do
  if one ~= kept then one:finish() end
  print((pcall(one.add, one, "a")), (pcall(one.finish, one)), one:close(), (one:close()))
end]], "false\tfalse\tnil\tnil\nfalse\tfalse\tnil\tnil\n")
end)

-- promise: docs/crypto.md: Add a large text to an object in parts of a megabyte, while it is read from its file or
-- connection; then other tasks run between the parts.
test("a digest in parts lets other tasks run", function()
    equal(run[[
local task, ticks = require "sxe.task", 0
local ticker = task.start(function() while true do task.sleep(0) ticks = ticks + 1 end end)
local part, whole = ("x"):rep(1 << 20), c.new_digest "sha256"
for _ = 1, 50 do whole:add(part) task.sleep(0) end
ticker:cancel()
print(e.encode_hex(whole:finish()) == e.encode_hex(c.digest("sha256", part:rep(50))), ticks >= 40)]], "true\ttrue\n")
end)

-- promise: docs/crypto.md: crypto.random_integer(least, most) returns an integer in that range, both ends included,
-- each with the same probability.
test("random integers are equally frequent", function()
    equal(run[[
local counts, chi = {0, 0, 0, 0, 0, 0}, 0
for _ = 1, 60000 do local n = c.random_integer(1, 6) counts[n] = counts[n] + 1 end
for _, n in ipairs(counts) do chi = chi + (n - 10000) ^ 2 / 10000 end
print(chi < 45)]], "true\n") -- with 5 degrees of freedom, 1 run in 70 million has more
end)

-- promise: docs/crypto.md: The alphabet has 2 to 256 characters of one byte, each only once; the default is the 62
-- letters and digits of ASCII. All characters of the alphabet are equally likely.
test("characters of a random text are equally frequent", function()
    equal(run[[
local function chi(text, size)
  local counts, sum, wanted = {}, 0, #text / size
  for character in text:gmatch(".") do counts[character] = (counts[character] or 0) + 1 end
  for _, n in pairs(counts) do sum, size = sum + (n - wanted) ^ 2 / wanted, size - 1 end
  return size == 0 and sum
end
local text = c.random_text(62 * 1000)
-- with 61 degrees of freedom, 1 run in 10 billion has more; were bytes taken modulo 62, it would be some 700
print(chi(text, 62) < 160, not text:find "%W", chi(c.random_text(10000, "ab"), 2) < 50)
print((pcall(c.random_text, 8, "a")), (pcall(c.random_text, 8, "abba")), #c.random_text(8, "\0\255"))]],
        "true\ttrue\ttrue\nfalse\tfalse\t8\n")
end)

-- promise: docs/crypto.md: **`crypto.verify_password(password, hash)`** returns whether this is the password, in a time
-- that does not depend on where the hashes differ; or `nil, message` for a text that is no such hash, or one that costs
-- too much.
test("a hash verifies its own password alone, in other processes, too", function()
    local hash = run[[io.write(c.hash_password("pass\0word", {n = 1024}))]]
    equal(run(("local hash = %q\n"):format(hash) .. [[
print(c.verify_password("pass\0word", hash), c.verify_password("pass", hash), c.verify_password("", hash))
print((c.verify_password("pass\0word", (hash:gsub("r=8", "r=9")))), (c.verify_password("pass\0word", hash:sub(1, -2))))
print((c.verify_password("pass\0word", (hash:gsub("ln=10", "ln=40")))), (c.verify_password("a", "$2y$04$abcdefghij")))
for _, cost in ipairs{"ln=1,r=524288,p=1", "ln=2,r=262144,p=1", "ln=1,r=16384,p=120", "ln=1,r=1,p=1000000"} do
  print((c.verify_password("a", (hash:gsub("ln=10,r=8,p=3", cost)))))
end]]),
        "true\tfalse\tfalse\nfalse\tnil\nnil\tnil\nnil\nnil\nnil\nnil\n")
end)

-- promise: docs/crypto.md: A password of up to 64 bytes is the same password with zero bytes at its end, and a longer
-- one is the same as its SHA-256 of 32 bytes: so scrypt is in all programs, since it begins with HMAC. Zero bytes
-- elsewhere count.
test("zero bytes at the end of a password do not count", function()
    equal(run[[
local long = ("a"):rep(65)
for _, pair in ipairs{{"", "\0"}, {"x", "x\0\0"}, {long, c.digest("sha256", long)},
                      {"x", "\0x"}, {"x", "x\0y"}, {long, long .. "\0"}} do
  print((c.verify_password(pair[2], c.hash_password(pair[1], {n = 2}))))
end]], "true\ntrue\ntrue\nfalse\nfalse\nfalse\n")
end)

local TASKS = 'local task = require "sxe.task"\n'

-- promise: docs/crypto.md: The task waits meanwhile, as for a file, and other tasks run; the time does not count for
-- the task's limit of CPU time.
test("tasks run while passwords are hashed", function()
    -- The limit of CPU time is 20 ms, of which a hash takes ten times as much.
    local proc <close> = wire.spawn{wire.program "sxe-lua", "--cpu", "20ms", "-e", TASKS .. [[
        local crypto = require "sxe.crypto"
        local hashed, turns = 0, 0
        local calls = {
            function() return crypto.hash_password "secret" end,
            function() return crypto.scrypt("secret", "salt") end,
            function() return crypto.pbkdf2("sha256", "secret", "salt") end,
        }
        for _, call in ipairs(calls) do
            task.start(function() assert(#call() >= 32) hashed = hashed + 1 end)
        end
        task.start(function()
            while hashed < #calls do task.sleep(0.001) turns = turns + 1 end
            print(turns >= 10)
        end)]]}
    equal(proc:output(200), "true\n")
    equal(proc:errors(), "")
    equal(proc:wait(60), 0)
end)

-- promise: docs/crypto.md: If the task is cancelled, the call returns `nil, "cancelled"`. A hash that a thread has
-- begun is completed, and nobody gets it; a call that waits for a thread is dropped.
test("tasks that are cancelled get no hash", function()
    equal(run(TASKS .. [[
        local tasks, results = {}, {}
        for i = 1, 20 do
            tasks[i] = task.start(function()
                local hash, why = c.hash_password "secret"
                results[hash and "hash" or why] = (results[hash and "hash" or why] or 0) + 1
            end)
        end
        task.start(function()
            task.sleep(0.01)
            for i = 1, 19 do tasks[i]:cancel() end
            tasks[20]:join()
            print(results.cancelled + results.hash, results.hash >= 1, results.cancelled >= 1)
        end)]]), "20\ttrue\ttrue\n")
end)

-- promise: docs/crypto.md: Where a task cannot wait (in a callback of `table.sort`, in a finalizer), outside of a task,
-- and before the loop starts, the call computes at once.
test("hashes where no task can wait", function()
    equal(run(TASKS .. [[
        local cheap = { n = 2 }
        print(#c.scrypt("a", "b", cheap))
        task.start(function()
            table.sort({ 1, 2 }, function() print(#c.scrypt("a", "b", cheap)) return false end)
            setmetatable({}, { __gc = function() print(#c.hash_password("a", cheap) > 80) end })
            collectgarbage()
            print(coroutine.wrap(function() return #c.scrypt("a", "b", cheap) end)())
        end)]]), "32\n32\ntrue\n32\n")
end)

-- promise: docs/crypto.md: `crypto.open(key, sealed [, options])` returns the text again, or `nil, message` if any
-- byte was changed. It returns no text before the tag was checked.
test("a sealed text that was changed is not opened", function()
    equal(run[[
local key, text = c.random_bytes(32), ("secret "):rep(1000)
local sealed = c.seal(key, text)
for at = 1, #sealed, 97 do
  local bad = sealed:sub(1, at - 1) .. string.char(sealed:byte(at) ~ 1) .. sealed:sub(at + 1)
  local opened, why = c.open(key, bad)
  assert(opened == nil and type(why) == "string" and not why:find "secret")
  assert(c.open(key, sealed) == text)
end
for length = 0, 40 do assert(c.open(key, sealed:sub(1, length)) == nil) end
print(c.open(key, sealed .. "x"))]], "nil\tforged, or sealed with another key, nonce or aad\n")
end)

-- promise: docs/crypto.md: `aad` is a text that must be the same for both calls but is not in the result. Use the
-- name of the user or field to which the sealed text belongs, so that the sealed text cannot be moved to another one.
test("a sealed text belongs to its aad", function()
    equal(run[[
local key = c.random_bytes(32)
local sealed = c.seal(key, "text", {aad = "ann"})
print(#sealed, c.open(key, sealed, {aad = "ann"}), (c.open(key, sealed, {aad = "bob"})), (c.open(key, sealed)))]],
        "32\ttext\tnil\tnil\n")
end)

-- promise: docs/crypto.md: A wrong argument raises an error: an unknown name, a key of a wrong length, a number out
--   of range.
test("wrong arguments raise and the next call works", function()
    equal(run[[
local huge, calls = ("x"):rep(1 << 21), 0
for name, f in pairs(c) do
  for _, arguments in ipairs{{}, {nil}, {{}}, {"sha256", {}}, {"none", "a", "b"}, {-1}, {1e300}, {huge}, {"", huge, huge},
                             {print, print}, {"", "", "", 7}, {math.mininteger, 0 / 0}} do
    pcall(f, table.unpack(arguments, 1, 4))
    calls = calls + 1
  end
end
print(calls > 100, #c.digest("sha256", huge))]], "true\t32\n")
end)

-- promise: docs/crypto.md: They return `nil, message` for any other text, and for a text of more than 65,536 bytes.
test("a text that is no key, of any length, raises nothing", function()
    equal(run[[
for _, read in ipairs{ c.private_key, c.public_key } do
  for _, length in ipairs{ 0, 1, 65536, 65537, 1 << 20 } do
    local key, why = read(("x"):rep(length))
    assert(key == nil and type(why) == "string")
  end
end
print "done"]], "done\n")
end)

-- promise: docs/crypto.md: A public key is an object, not a string, so it cannot be taken for the secret of an HMAC.
test("a public key is no secret of an HMAC", function()
    equal(run[[
local pem = dofile "test/unit/lib-sxe-crypto/crypto-pems.lua".p256
local private = c.private_key(pem)
local public = c.public_key(private:public())
print(private:type(), c.public_key(pem), (pcall(c.hmac, "sha256", public, "a")), type(tostring(public)))]],
        "p-256\tnil\tfalse\tstring\n")
end)

-- promise: docs/crypto.md: `verify` raises no error for any signature.
test("no signature makes verify raise", function()
    equal(run[[
local pems, wrong = dofile "test/unit/lib-sxe-crypto/crypto-pems.lua", 0
for _, kind in ipairs{"rsa", "p256", "p384", "ed25519"} do
  local key = c.private_key(pems[kind])
  local good = key:sign "a"
  for i = 1, 300 do
    local bad = i % 2 == 0 and c.random_bytes(i) or good:sub(1, i) .. c.random_bytes(#good)
    if key:verify("a", bad) == false then wrong = wrong + 1 end
  end
  assert(key:verify("a", good))
end
print(wrong)]], "1200\n")
end)

-- Another implementation reads what ours writes, and the other way round.
test("the openssl program verifies our signatures, and we its", function()
    if not wire.has "openssl" then print("skipped: openssl's signatures, because openssl is not installed") return end
    equal(run[==[
local pems, base = dofile "test/unit/lib-sxe-crypto/crypto-pems.lua", os.tmpname()
local function write(name, text) local f <close> = io.open(base .. name, "wb") f:write(text) end
local function openssl(arguments) return os.execute("openssl dgst " .. arguments:gsub("@", base) .. " >/dev/null 2>&1") end
local PSS = " -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest"
write(".text", "a text")
for _, case in ipairs{{"rsa", "-sha256" .. PSS}, {"rsa", "-sha512" .. PSS, {digest = "sha512"}},
                      {"rsa", "-sha384", {pkcs1 = true, digest = "sha384"}}, {"p256", "-sha256"}, {"p384", "-sha384"}} do
  local key = c.private_key(pems[case[1]])
  write(".key", pems[case[1]])
  write(".pub", key:public())
  write(".sig", key:sign("a text", case[3]))
  assert(openssl(case[2] .. " -verify @.pub -signature @.sig @.text"), case[2])
  assert(openssl(case[2] .. " -sign @.key -out @.sig @.text"), case[2])
  assert(key:verify("a text", io.open(base .. ".sig", "rb"):read "a", case[3]), case[2])
end
for _, suffix in ipairs{"", ".text", ".key", ".pub", ".sig"} do os.remove(base .. suffix) end
print "done"]==], "done\n")
end)

-- promise: docs/crypto.md: The key decides the algorithm, not the token's header, so none is never accepted.
test("a token cannot choose its algorithm", function()
    equal(run[==[
local pems, url = dofile "test/unit/lib-sxe-crypto/crypto-pems.lua", {url = true}
local private = c.private_key(pems.rsa)
local public = c.public_key(private:public())
local claims, taken = e.encode_base64('{"exp":99999999999}', url), 0
for _, alg in ipairs{"none", "HS256", "RS256", "PS256", "ES256"} do
  local text = e.encode_base64('{"alg":"' .. alg .. '"}', url) .. "." .. claims
  for _, signature in ipairs{"", c.hmac("sha256", private:public(), text), private:sign(text), ("\0"):rep(256)} do
    if c.verify_jwt(text .. "." .. e.encode_base64(signature, url), public) then taken = taken + 1 end
  end
end
print(taken, c.verify_jwt(c.sign_jwt({exp = 99999999999}, private), public).exp)]==], "0\t99999999999\n")
end)

-- promise: docs/crypto.md: It raises an error for tokens that `verify_jwt` always refuses: a token of more than
-- 65,536 bytes, claims that are a list, `crit` in the header, and text that is not UTF-8.
test("a token that would always be refused is not made", function()
    equal(run[[
local secret, made = c.random_bytes(32), 0
for _, case in ipairs{{{a = ("x"):rep(70000)}}, {{1, 2}}, {{}, {crit = {"b64"}}}, {{a = "\xff"}}, {{}, {kid = "\xff"}}} do
  local good, why = pcall(c.sign_jwt, case[1], secret, {header = case[2]})
  if good or not why:find("^crypto.sign_jwt: ") then made = made + 1 print(why) end
end
print(made)]], "0\n")
end)

-- promise: docs/crypto.md: Without that option a token that has an `aud` is refused, because it is for another
-- audience;
test("a token for somebody else is refused", function()
    equal(run[[
local secret = c.random_bytes(32)
local token = c.sign_jwt({exp = os.time() + 60, aud = {"shop", "bank"}}, secret)
print((c.verify_jwt(token, secret)), (c.verify_jwt(token, secret, {audience = "pub"})),
      c.verify_jwt(token, secret, {audience = "bank"}).aud[1])]], "nil\tnil\tshop\n")
end)

-- Another implementation reads what ours writes, and the other way round.
local PYTHON <const> = [==[
import json, sys, jwt
for line in sys.stdin:
    case = json.loads(line)
    claims = jwt.decode(case["token"], case["public"], algorithms=[case["alg"]], audience="a")
    assert claims["sub"] == "ann", claims
    print(json.dumps({"token": jwt.encode({"sub": "bob", "exp": 99999999999, "aud": ["a"]}, case["private"], case["alg"])}))
]==]
test("PyJWT reads our tokens, and we its", function()
    local python = wire.has "python3"
    if not python or wire.spawn{python, "-c", "import jwt, cryptography"}:wait(60) ~= 0 then
        print("skipped: tokens of PyJWT, because python3-jwt is not installed")
        return
    end
    local program = os.tmpname()
    local file <close> = io.open(program, "w")
    file:write(PYTHON):flush()
    equal(run((([==[
local json = require "sxe.json"
local pems, secret, cases = dofile "test/unit/lib-sxe-crypto/crypto-pems.lua", ("s"):rep(64), {}
for alg, pem in pairs{HS256 = false, HS512 = false, RS256 = "rsa", PS256 = "rsa", RS512 = "rsa", PS384 = "rsa", ES256 = "p256",
                      ES384 = "p384", EdDSA = "ed25519"} do
  local key = pem and c.private_key(pems[pem])
  cases[#cases + 1] = {alg = alg, key = key or secret, private = pem and pems[pem] or secret, public = key and key:public() or secret}
end
local path = os.tmpname()
local file = io.open(path, "w")
for _, case in ipairs(cases) do
  local token = c.sign_jwt({sub = "ann", exp = os.time() + 600, aud = "a"}, case.key, {algorithm = case.alg})
  file:write(json.encode{alg = case.alg, token = token, private = case.private, public = case.public}, "\n")
end
file:close()
local number = 0
for line in io.popen("PYTHON <" .. path):lines() do
  number = number + 1
  local case = cases[number]
  assert(c.verify_jwt(json.decode(line).token, case.key, {algorithm = case.alg, audience = "a"}).sub == "bob")
end
os.remove(path)
print(number)]==]):gsub("PYTHON", python .. " " .. program))), "9\n")
    os.remove(program)
end)
