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

---Find the first match, and return its text and its groups. It is nil without a message if there is none. A wrong
---pattern, a search beyond its limits, and with the flag u a text that is not UTF-8 are nil and a message.
---@param subject string
---@param pattern string|sxe.Regex
---@param flags? string
---@param init? integer the byte at which the search starts: 1; from the end if it is negative
---@return sxe.regex.match? match nil: no match, or an error
---@return string? message
---@return integer? at
function regex.match(subject, pattern, flags, init) end

---Find the first match, and return the places of its first and last byte, then its groups, as string.find does. It is
---nil without a message if there is none.
---@param subject string
---@param pattern string|sxe.Regex
---@param flags? string
---@param init? integer
---@return integer? from nil: no match, or an error
---@return integer|string|nil to or the error
---@return string|false ... the groups
function regex.find(subject, pattern, flags, init) end

---Iterate over all matches, for a loop. It raises an error if the search fails.
---@param subject string
---@param pattern string|sxe.Regex
---@param flags? string
---@return fun(): sxe.regex.match?
function regex.gmatch(subject, pattern, flags) end

---Return the texts between the matches, at most `max`, the last of which is the rest. Groups are not in the list.
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

---Make a pattern that matches a text as it is.
---@param text string
---@return string pattern
function regex.escape(text) end

---@class sxe.Regex
local Regex = {}

---Find the first match, and return its text and its groups, as regex.match does.
---@param subject string
---@param init? integer
---@return sxe.regex.match? match
---@return string? message
---@return integer? at
function Regex:match(subject, init) end

---Find the first match, and return the places of its first and last byte, then its groups, as regex.find does.
---@param subject string
---@param init? integer
---@return integer? from
---@return integer|string|nil to
---@return string|false ...
function Regex:find(subject, init) end

---Return all matches, for a loop, as regex.gmatch does. The loop raises an error if the search fails.
---@param subject string
---@return fun(): sxe.regex.match?
function Regex:gmatch(subject) end

---Return the texts between the matches, as regex.split does.
---@param subject string
---@param max? integer
---@return string[]? texts
---@return string? message
---@return integer? at
function Regex:split(subject, max) end

---Replace matches, and return the new text and the count of replacements, as regex.gsub does.
---@param subject string
---@param replacement string|table|fun(match: sxe.regex.match): string|number|false|nil
---@param max? integer
---@return string? text
---@return integer|string|nil count
---@return integer? at
function Regex:gsub(subject, replacement, max) end

return regex
