---@meta sxe.session
-- SPDX-License-Identifier: MIT

---Values that a server keeps for a client from one request to the next. docs/sessions.md has examples.
---@class sxe.session
local session = {}

---@class sxe.session.store
---@field get fun(self: table, key: string, seconds: integer): string?, string? lets it live that long from now
---@field put fun(self: table, key: string, text: string, seconds: integer, replaces: boolean): boolean?, string? false: replaces, and there is none
---@field delete fun(self: table, key: string): any, string? false: there was none

---@class sxe.session.options
---@field secret string|string[] random, at least 32 bytes, the same in all processes; the first of a list is used
---@field dict? sxe.Dict
---@field redis? sxe.Redis
---@field store? sxe.session.store
---@field idle? integer seconds without a request; 3600
---@field lifetime? integer seconds; 86400
---@field persistent? boolean false: the cookie ends with the browser
---@field name? string "session"
---@field path? string
---@field domain? string
---@field same_site? "Lax"|"Strict"|"None"
---@field secure? boolean

---Make an object for the sessions of a site. Without `dict`, `redis` or `store` the values are in the client's cookie,
---encrypted. A wrong option raises an error; a secret has at least 32 bytes.
---@param options sxe.session.options
---@return sxe.Sessions
function session.new(options) end

---@class sxe.Sessions
local Sessions = {}

---Return the session of a request. Without a cookie that counts it is an empty one, never an error; nothing is stored
---before the first set, renew or token.
---@param req sxe.Request
---@param res sxe.Response
---@return sxe.Session
function Sessions:open(req, res) end

---Make a filter that opens the session of each request as req.ctx.session.
---@return fun(req: sxe.Request, res: sxe.Response)
function Sessions:filter() end

---Make a filter that answers 403 to a form without a token. Requests of GET, HEAD, OPTIONS and TRACE pass.
---@return fun(req: sxe.Request, res: sxe.Response): integer?, string?
function Sessions:guard() end

---@class sxe.Session
local Session = {}

---Return a value of the session, or nil. A change inside a table that get returned is not kept until the table is set.
---@param name string
---@return any value
function Session:get(name) end

---Set a value of the session, or several, and write all values. Call it before the reply begins, because it may set the
---cookie. Values are those of JSON; too many bytes for a cookie, or a store that fails, raise an error.
---@param name string|table<string, any> or several values by name
---@param value any nil removes it
function Session:set(name, value) end

---Give the session another id, when a client logs in; its values stay.
function Session:renew() end

---Remove the values and the cookie.
function Session:destroy() end

---Return whether the client has no session yet.
---@return boolean
function Session:is_new() end

---Return a token for a form, another one at each call. The first one sets the cookie, so call it before the reply
---begins.
---@return string
function Session:token() end

---Return whether a text is a token that Session:token made, for the id that the session has now.
---@param token? string
---@return boolean
function Session:check(token) end

return session
