---@meta sxe.crypto
-- SPDX-License-Identifier: MIT

---Digests, HMAC, random values, keys that are derived, sealed text, signatures, JSON Web Tokens. It is there in programs
---that were built with OpenSSL 3.
---@class sxe.crypto
local crypto = {}

---@alias sxe.crypto.digest "md5"|"sha1"|"sha256"|"sha384"|"sha512"|"sha3-256"|"sha3-384"|"sha3-512"|"blake2b"|"blake2s"

---Return the digest of a text as bytes, not as hexadecimal digits. Other tasks wait meanwhile; crypto.new_digest takes
---a large text in parts.
---@param digest sxe.crypto.digest
---@param text string
---@return string bytes
function crypto.digest(digest, text) end

---Return the authentication code of a text as bytes (RFC 2104), which only a holder of the key can make. Compare codes
---with crypto.equal, never with ==.
---@param digest sxe.crypto.digest
---@param key string
---@param text string
---@return string bytes
function crypto.hmac(digest, key, text) end

---Make a digest of a text that comes in parts. Hash:finish returns it as bytes.
---@param digest sxe.crypto.digest
---@return sxe.Hash
function crypto.new_digest(digest) end

---Make an authentication code of a text that comes in parts. Hash:finish returns it as bytes.
---@param digest sxe.crypto.digest
---@param key string
---@return sxe.Hash
function crypto.new_hmac(digest, key) end

---@class sxe.Hash
local Hash = {}

---Add the next part of the text, and return the object. Other tasks wait meanwhile, so add a large text in parts of a
---megabyte. After finish or close this raises an error.
---@param text string
---@return sxe.Hash self
function Hash:add(text) end

---Return the digest as bytes, and close the object.
---@return string bytes
function Hash:finish() end

---Close the object; a <close> variable does so at the end of its scope.
function Hash:close() end

---Return random bytes of the system, for keys and nonces. Nobody can guess them, unlike those of math.random.
---@param bytes integer at most 1048576
---@return string
function crypto.random_bytes(bytes) end

---Return a random text of base64 for URLs, for links and sessions. Nobody can guess it.
---@param bytes? integer 16 to 256 random bytes: 32
---@return string token
function crypto.random_token(bytes) end

---Return a random text of an alphabet, for codes and passwords. All characters of the alphabet are equally likely.
---@param length integer at most 1048576 characters
---@param alphabet? string 2 to 256 characters of one byte, each only once: the 62 letters and digits of ASCII
---@return string
function crypto.random_text(length, alphabet) end

---@class sxe.crypto.scrypt
---@field n? integer a power of 2: 32768
---@field r? integer 8
---@field p? integer 3
---@field length? integer only of crypto.scrypt: 32

---Derive a key from a password (RFC 7914). A thread computes it; the task waits.
---@param password string
---@param salt string
---@param options? sxe.crypto.scrypt
---@return string? key, string? why nil, "cancelled": the task was cancelled
function crypto.scrypt(password, salt, options) end

---Return a hash of a password, with a salt of its own, to be kept. A thread computes it; the task waits.
---@param password string
---@param options? sxe.crypto.scrypt
---@return string? hash, string? why nil, "cancelled": the task was cancelled
function crypto.hash_password(password, options) end

---Return whether a password is that of a hash. A thread computes it; the task waits.
---@param password string
---@param hash string
---@return boolean? is_right nil: the hash is none of hash_password
---@return string? message
function crypto.verify_password(password, hash) end

---Return a random integer from least to most, both included. All are equally likely, and nobody can guess them.
---@param least integer
---@param most integer
---@return integer
function crypto.random_integer(least, most) end

---Return whether two strings are equal. The time that this takes does not tell where they differ.
---@param a string
---@param b string
---@return boolean
function crypto.equal(a, b) end

---@class sxe.crypto.hkdf
---@field salt? string
---@field info? string what the key is for
---@field length? integer that of the digest

---Derive a key from a secret that is random already (RFC 5869).
---@param digest sxe.crypto.digest
---@param secret string
---@param options? sxe.crypto.hkdf
---@return string key
function crypto.hkdf(digest, secret, options) end

---@class sxe.crypto.pbkdf2
---@field rounds? integer 600000
---@field length? integer that of the digest

---Derive a key from a password (RFC 8018). A thread computes it; the task waits.
---@param digest sxe.crypto.digest
---@param password string
---@param salt string
---@param options? sxe.crypto.pbkdf2
---@return string? key, string? why nil, "cancelled": the task was cancelled
function crypto.pbkdf2(digest, password, salt, options) end

---@class sxe.crypto.sealing
---@field algorithm? "aes-256-gcm"|"aes-128-gcm"|"chacha20-poly1305" "aes-256-gcm"
---@field aad? string must be the same when it is opened, and is not in the result

---Encrypt a text, so that nobody can read or change it without the key. The result is 28 bytes longer. Change the key
---before it has sealed 2^32 texts.
---@param key string 32 bytes; 16 for aes-128-gcm
---@param text string
---@param options? sxe.crypto.sealing
---@return string sealed
function crypto.seal(key, text, options) end

---Open a text of crypto.seal, and return the text that was sealed. It is nil and a message if any byte was changed, or
---if the key or `aad` is another one.
---@param key string
---@param sealed string
---@param options? sxe.crypto.sealing
---@return string? text, sxe.error? why
function crypto.open(key, sealed, options) end

---Encrypt a text with a nonce that a protocol prescribes. Never seal two texts with the same key and nonce.
---@param key string
---@param nonce string 12 bytes
---@param text string
---@param options? sxe.crypto.sealing
---@return string sealed
function crypto.seal_with_nonce(key, nonce, text, options) end

---Open a text of crypto.seal_with_nonce. It is nil and a message if any byte was changed, or if the key, the nonce or
---`aad` is another one.
---@param key string
---@param nonce string
---@param sealed string
---@param options? sxe.crypto.sealing
---@return string? text, sxe.error? why
function crypto.open_with_nonce(key, nonce, sealed, options) end

---A key of a pair, which signs or verifies.
---@class sxe.Key
local Key = {}

---Return the kind of the key, which decides the algorithm of its signatures.
---@return "rsa"|"p-256"|"p-384"|"ed25519"
function Key:type() end

---Return the public key in PEM, also of a private key.
---@return string pem
function Key:public() end

---@class sxe.crypto.signing
---@field digest? "sha256"|"sha384"|"sha512" of RSA: "sha256"
---@field pkcs1? boolean of RSA: PKCS #1 v1.5 in place of PSS
---@field raw? boolean of ECDSA: both numbers, as in JWT, in place of DER

---Return a signature of a text as bytes, made with a private key. A public key raises an error.
---@param text string
---@param options? sxe.crypto.signing
---@return string signature
function Key:sign(text, options) end

---Return whether a signature of a text was made with the private key of this pair. A signature of any form raises no
---error. Give the same options as to Key:sign.
---@param text string
---@param signature string
---@param options? sxe.crypto.signing
---@return boolean
function Key:verify(text, signature, options) end

---Close the object; a <close> variable does so at the end of its scope.
function Key:close() end

---Read a private key from a text in PEM, which may be encrypted with a password. The kinds are RSA with 2048 to 8192
---bits, ECDSA with P-256 or P-384, and Ed25519; any other text is nil and a message.
---@param pem string
---@param password? string
---@return sxe.Key? key, sxe.error? why
function crypto.private_key(pem, password) end

---Read a public key from a text in PEM. The kinds are those of crypto.private_key; any other text is nil and a message.
---@param pem string
---@return sxe.Key? key, sxe.error? why
function crypto.public_key(pem) end

---@class sxe.crypto.sign_jwt
---@field algorithm? "HS256"|"HS384"|"HS512"|"RS256"|"RS384"|"RS512"|"PS256"|"PS384"|"PS512"|"ES256"|"ES384"|"EdDSA"
---@field header? table fields beside alg and typ

---Make a JSON Web Token of a table of claims. The key decides the algorithm. A token that crypto.verify_jwt would
---always refuse raises an error.
---@param claims table
---@param key sxe.Key|string a private key, or a secret of at least 32 bytes
---@param options? sxe.crypto.sign_jwt
---@return string token
function crypto.sign_jwt(claims, key, options) end

---@class sxe.crypto.verify_jwt
---@field algorithm? string that of the key
---@field audience? string must be, or be in, aud
---@field issuer? string must be iss
---@field leeway? number seconds by which clocks may differ: 0
---@field needs_exp? boolean false: a token without exp is good, too
---@field now? number seconds since 1970

---Check a JSON Web Token, and return its claims and its header, or nil and a message. The key decides the algorithm,
---never the token. A token that has no exp, has expired, or is for an audience that `audience` does not name is
---refused.
---@param token string
---@param key sxe.Key|string|(sxe.Key|string)[]
---@param options? sxe.crypto.verify_jwt
---@return table? claims, table|sxe.error header
function crypto.verify_jwt(token, key, options) end

return crypto
