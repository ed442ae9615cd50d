---@meta sxe.client
-- SPDX-License-Identifier: MIT

---Call HTTP servers, over TLS, too, with cookies, redirects and streams. Connections are kept and used again.
---@class sxe.client
local client = {}

---@class sxe.client.part
---@field name string
---@field value? string|number|boolean
---@field file? string path of a file, instead of a value
---@field filename? string the last name of the path
---@field type? string application/octet-stream, of a file

---@class sxe.client.options
---@field method? string GET
---@field headers? table<string, string|number|string[]>
---@field query? table<string, any> fields that are added to the URL
---@field body? string|fun(): string? or a function that gives its parts, and nil at the end
---@field json? any a value that is sent as JSON
---@field form? table<string, any> fields that are sent as a form
---@field trace? boolean false: do not pass on the trace of the request that the task answers
---@field multipart? sxe.client.part[] fields and files that are sent as multipart/form-data
---@field auth? string[] user and password, for Basic
---@field timeout? sxe.seconds of the whole call, 30
---@field connect_timeout? sxe.seconds 10
---@field first_byte_timeout? sxe.seconds from the request's end to the response's first byte
---@field redirects? integer that are followed, 5; 0: none is
---@field on_redirect? fun(url: string, response: sxe.ClientResponse): boolean? false: do not follow it
---@field allow_downgrade? boolean follow a redirect from https to http, too
---@field tls? sxe.tls.options of https
---@field proxy? string|false URL of a forward proxy; false: none; nil: that of the environment
---@field body_max? integer bytes of a body that comes whole, 8 MiB
---@field decode? boolean ask for gzip and deflate, and decode them; true
---@field cookies? sxe.ClientJar keeps what servers set, and sends it
---@field stream? boolean the response comes without its body, which is read in parts
---@field public_only? boolean refuse addresses that are not of the internet

---@class sxe.client.request: sxe.client.options
---@field url string

---@class sxe.ClientResponse
---@field status integer
---@field reason string
---@field headers table<string, string> by name in any case; repeated ones with commas
---@field fields string[] name, value, name, value ... as they came
---@field body string unless it is a stream
---@field decoded? string the coding of the body, "gzip" or "deflate", if it was decoded
---@field url string that answered, after redirects
local ClientResponse = {}

---Decode the body as JSON.
---@return any value, string? why
function ClientResponse:json() end

---Read the next bytes of the body of a stream, and nil at its end. The task waits for them.
---@return string? data, sxe.error? why, sxe.code? code
function ClientResponse:read() end

---Iterate over the parts of the body of a stream, for a loop. It raises an error where response:read() returns one.
---@return fun(): string?
function ClientResponse:chunks() end

---Close a stream before its end.
function ClientResponse:close() end

---@class sxe.client.cookie
---@field name string
---@field value string
---@field domain string
---@field path string
---@field secure boolean
---@field host_only boolean
---@field expires? integer seconds since 1970; nil: when the jar ends

---@class sxe.ClientJar
local ClientJar = {}

---Set a cookie from the text of a Set-Cookie field, as a reply from that URL would.
---@param url string
---@param text string
---@return true? ok, sxe.error? why
function ClientJar:set(url, text) end

---Return the Cookie field that a request to that URL sends.
---@param url string
---@return string? header, sxe.error? why
function ClientJar:header(url) end

---Return a list of all cookies of the jar.
---@return sxe.client.cookie[]
function ClientJar:list() end

---Remove all cookies of the jar.
function ClientJar:clear() end

---Make an empty jar of cookies.
---@return sxe.ClientJar
function client.jar() end

---Send a request, and wait for its response. Any status is a response; nil, message, code means that none came. A
---response whose body is larger than `body_max` is an error, too: use `stream` for it.
---@param options sxe.client.request
---@return sxe.ClientResponse? response, sxe.error? why, sxe.code? code
function client.request(options) end

---Send a GET request, and wait for its response, as client.request does.
---@param url string
---@param options? sxe.client.options
---@return sxe.ClientResponse? response, sxe.error? why, sxe.code? code
function client.get(url, options) end

---Send a HEAD request, and wait for its response, which has no body, as client.request does.
---@param url string
---@param options? sxe.client.options
---@return sxe.ClientResponse? response, sxe.error? why, sxe.code? code
function client.head(url, options) end

---Send a POST request, and wait for its response, as client.request does. The body is `body`, `json`, `form` or
---`multipart` of the options.
---@param url string
---@param options? sxe.client.options
---@return sxe.ClientResponse? response, sxe.error? why, sxe.code? code
function client.post(url, options) end

---Send a PUT request, and wait for its response, as client.request does.
---@param url string
---@param options? sxe.client.options
---@return sxe.ClientResponse? response, sxe.error? why, sxe.code? code
function client.put(url, options) end

---Send a PATCH request, and wait for its response, as client.request does.
---@param url string
---@param options? sxe.client.options
---@return sxe.ClientResponse? response, sxe.error? why, sxe.code? code
function client.patch(url, options) end

---Send a DELETE request, and wait for its response, as client.request does.
---@param url string
---@param options? sxe.client.options
---@return sxe.ClientResponse? response, sxe.error? why, sxe.code? code
function client.delete(url, options) end

return client
