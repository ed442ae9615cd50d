---@meta sxe.regex
-- SPDX-License-Identifier: MIT

---Regular expressions of Perl. It is there in programs that were built with PCRE2, also in the sandbox.
---@class sxe.regex
local regex = {}

---[0] is the text of the match, [1] and so on are the groups, also by their names; false: it took no part.
---@alias sxe.regex.match table<integer|string, string|false>

---Compile a pattern. The flags: i m s x u (UTF-8) U (ungreedy) a (anchored) D J n.
---@param pattern string
---@param flags? string
---@return sxe.Regex? re
---@return string? message
---@return integer? at the byte of the pattern at which it is wrong
function regex.compile(pattern, flags) end

---@param subject string
---@param pattern string|sxe.Regex
---@param flags? string
---@param init? integer the byte at which the search starts: 1; from the end if it is negative
---@return sxe.regex.match? match nil: no match, or an error
---@return string? message
---@return integer? at
function regex.match(subject, pattern, flags, init) end

---@param subject string
---@param pattern string|sxe.Regex
---@param flags? string
---@param init? integer
---@return integer? from nil: no match, or an error
---@return integer|string|nil to or the error
---@return string|false ... the groups
function regex.find(subject, pattern, flags, init) end

---All matches, for a loop. Raises an error if the search fails.
---@param subject string
---@param pattern string|sxe.Regex
---@param flags? string
---@return fun(): sxe.regex.match?
function regex.gmatch(subject, pattern, flags) end

---The texts between the matches.
---@param subject string
---@param pattern string|sxe.Regex
---@param flags? string
---@param max? integer the most texts
---@return string[]? texts
---@return string? message
---@return integer? at
function regex.split(subject, pattern, flags, max) end

---Replace matches by a text with $1, ${name} and $$; by a value of a table; or by the result of a function.
---@param subject string
---@param pattern string|sxe.Regex
---@param replacement string|table|fun(match: sxe.regex.match): string|number|false|nil
---@param flags? string
---@param max? integer the most replacements
---@return string? text
---@return integer|string|nil count or the error
---@return integer? at
function regex.gsub(subject, pattern, replacement, flags, max) end

---A pattern that matches this text.
---@param text string
---@return string pattern
function regex.escape(text) end

---@class sxe.Regex
local Regex = {}

---@param subject string
---@param init? integer
---@return sxe.regex.match? match
---@return string? message
---@return integer? at
function Regex:match(subject, init) end

---@param subject string
---@param init? integer
---@return integer? from
---@return integer|string|nil to
---@return string|false ...
function Regex:find(subject, init) end

---@param subject string
---@return fun(): sxe.regex.match?
function Regex:gmatch(subject) end

---@param subject string
---@param max? integer
---@return string[]? texts
---@return string? message
---@return integer? at
function Regex:split(subject, max) end

---@param subject string
---@param replacement string|table|fun(match: sxe.regex.match): string|number|false|nil
---@param max? integer
---@return string? text
---@return integer|string|nil count
---@return integer? at
function Regex:gsub(subject, replacement, max) end

return regex
