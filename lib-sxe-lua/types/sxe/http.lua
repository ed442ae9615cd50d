---@meta sxe.http
-- SPDX-License-Identifier: MIT

---Handlers of requests, servers, routes, files, proxies and events.
---@class sxe.http
---@field stats sxe.Counters requests, errors, truncated, refused, gone
local http = {}

---A handler returns the reply: a text, a table as JSON, a status, or a status and a body; nil: it used res.
---@alias sxe.handler fun(req: sxe.Request, res: sxe.Response): any, any

---@class sxe.http.limits
---@field body? integer bytes that req:body() takes, 1 MiB
---@field bodies? integer bytes of all bodies that are not whole yet, 256 MiB
---@field line? integer bytes of the request line
---@field head? integer bytes of the head
---@field fields? integer header fields
---@field requests? integer on a connection
---@field address? integer connections of an address

---@class sxe.http.timeouts
---@field head? sxe.seconds|false
---@field body? sxe.seconds|false
---@field idle? sxe.seconds|false
---@field handler? sxe.seconds|false

---@class sxe.http.serving
---@field handler sxe.handler|sxe.Router|sxe.Files|sxe.Proxy
---@field port? integer 0: one that is free
---@field ip? string all addresses
---@field unix? string a path instead of a port
---@field limits? sxe.http.limits
---@field timeouts? sxe.http.timeouts
---@field connections? integer at once, 10000
---@field half_close? boolean requests go on when their client half-closed, false
---@field request_id? string a header that gives each reply the request's id
---@field trace? boolean requests are part of traces, see req.trace
---@field trust_from? string peers whose ids count: "10.0.0.0/8, ::1, unix"
---@field forwarded? "forwarded"|"x-forwarded" the field of these by which clients are known

---@class sxe.http.files
---@field index? string index.html
---@field listing? boolean of directories without index, false
---@field dot_files? boolean false
---@field gzip? boolean a.js.gz for a.js, true
---@field cache_control? string without control bytes
---@field nosniff? boolean X-Content-Type-Options: nosniff (true)
---@field types? string lines as of mime.types
---@field ranges? integer that a request may ask for, 16; 0: none

---@class sxe.req.tls
---@field version "TLSv1.2"|"TLSv1.3"
---@field cipher string
---@field sni? string the server name that the client asked for
---@field alpn? string
---@field resumed boolean
---@field client? sxe.req.tls.client the client's verified certificate

---@class sxe.req.tls.client
---@field subject string as in RFC 2253
---@field issuer string
---@field names string[] "DNS:a.example", "IP:192.0.2.1", "URI:...", "email:..."
---@field not_before integer seconds since 1970
---@field not_after integer
---@field fingerprint string SHA-256, 64 hexadecimal digits

---@class sxe.Request
---@field method string
---@field path string in its normal form, decoded; 400 with an escaped slash, a backslash or a NUL
---@field escaped_path string the same, not decoded
---@field target string as it came
---@field host? string
---@field version "1.0"|"1.1"
---@field peer string the client's address
---@field scheme "http"|"https" as the client sees it
---@field user? string whose password was checked
---@field tls? sxe.req.tls nil: the connection does not speak TLS
---@field id string 16 hexadecimal digits, or what a trusted peer sent; as in the log
---@field trace? { trace_id: string, parent_id?: string, span_id: string, sampled: boolean, state?: string }
---@field route? string the pattern that matched
---@field ctx table empty at first, for filters and handlers
---@field headers table<string, string>|fun(): table<string, string>
---@field query table<string, string>|fun(): table<string, string>
---@field cookies table<string, string>|fun(): table<string, string> decoded
---@field params table<string, string>|fun(): table<string, string> 400 with an escaped slash, or dots
---@field escaped_params table<string, string>|fun(): table<string, string> the same, not decoded
local Request = {}

---Read the whole body; the reply is 413 if it has more than max bytes.
---@param max? integer
---@return string? body, sxe.error? why
function Request:body(max) end

---Iterate over the parts of a body of any length, as they arrive. The loop waits for the client. After this, req:body()
---and the like raise an error.
---@return fun(req: sxe.Request): string?
---@return sxe.Request
function Request:chunks() end

---Decode the body as JSON; the reply is 400 if it is not JSON.
---@param max? integer
---@return any value, sxe.error? why
function Request:json(max) end

---Return the fields of an HTML form. A form with files becomes the reply 415: sxe.multipart reads it; more than 1000
---names become 413.
---@param max? integer
---@return table<string, string>? fields, sxe.error? why
function Request:form(max) end

---@class sxe.Response
---@field status integer
---@field headers table<string, string|string[]|nil>
---@field is_begun boolean it was sent, or partly
local Response = {}

---Send a text as the whole reply, before the handler returns. The status is 200 unless one is given or set before.
---@param text string|number
---@param status? integer
---@return true
function Response:send(text, status) end

---Send a value as JSON, as the whole reply. A value that has no JSON raises an error.
---@param value any
---@param status? integer
---@return true
function Response:json(value, status) end

---Send the client to another URL. The status is 300 to 399 except 304. A URL with a blank, a control character or a
---byte that is not ASCII raises an error.
---@param url string
---@param status? integer 302
---@return true
function Response:redirect(url, status) end

---@class sxe.res.cookie
---@field max_age? integer seconds; until the browser ends
---@field path? string "/"
---@field domain? string this host alone
---@field same_site? "Lax"|"Strict"|"None" "Lax"
---@field http_only? boolean whether scripts of pages cannot read it; true
---@field secure? boolean whether the connection speaks TLS
---@field partitioned? boolean false

---Set a cookie, or remove it by a value of nil.
---@param name string
---@param value string|number|nil
---@param options? sxe.res.cookie
function Response:cookie(name, value, options) end

---Reply with a file of the directory in which the program was started.
---@param name string
---@return true
function Response:file(name) end

---Write a part of the reply; this waits for a slow client.
---@param text string|number
---@return true? ok, sxe.error? why
function Response:write(text) end

---End the reply before the handler ends.
---@return true? ok, sxe.error? why
function Response:finish() end

---Break the reply off, so that the client sees that it is not whole.
function Response:abort() end

---Begin a stream of server-sent events.
---@return sxe.Events? events, sxe.error? why
function Response:sse() end

---@class sxe.http.event
---@field data? string|number
---@field event? string
---@field id? string|number
---@field retry? integer milliseconds

---@class sxe.Events
local Events = {}

---Send an event, from a text or a table. The task waits for a client that is slow. Returns nil, "closed" or "cancelled"
---when the client is gone.
---@param event string|number|sxe.http.event
---@return true? ok, sxe.error? why
function Events:send(event) end

---Send a comment: clients ignore it, and proxies see that the connection is alive.
---@param text? string
---@return true? ok, sxe.error? why
function Events:comment(text) end

---@class sxe.HttpServer
---@field port integer
---@field ip string
local HttpServer = {}

---Accept nothing more; true when the last reply was sent.
---@param timeout? sxe.seconds
---@return true? ok, sxe.error? why
function HttpServer:stop(timeout) end

---@class sxe.Router
local Router = {}

---Add a handler for GET, which also answers HEAD. The pattern may have {name} for one segment and {name...} for the
---rest. A route that matches the same paths and methods as another one, and any route when the loop runs, raises an
---error.
---@param pattern string "/users/{id}", "/files/{path...}"
---@param handler sxe.handler
---@return sxe.Router
function Router:get(pattern, handler) end

---Add a handler for HEAD, in place of that of GET.
---@param pattern string
---@param handler sxe.handler
---@return sxe.Router
function Router:head(pattern, handler) end

---Add a handler for POST. Router:get has the rules of patterns.
---@param pattern string
---@param handler sxe.handler
---@return sxe.Router
function Router:post(pattern, handler) end

---Add a handler for PUT. Router:get has the rules of patterns.
---@param pattern string
---@param handler sxe.handler
---@return sxe.Router
function Router:put(pattern, handler) end

---Add a handler for DELETE. Router:get has the rules of patterns.
---@param pattern string
---@param handler sxe.handler
---@return sxe.Router
function Router:delete(pattern, handler) end

---Add a handler for PATCH. Router:get has the rules of patterns.
---@param pattern string
---@param handler sxe.handler
---@return sxe.Router
function Router:patch(pattern, handler) end

---Add a handler for OPTIONS, which the router answers by itself otherwise.
---@param pattern string
---@param handler sxe.handler
---@return sxe.Router
function Router:options(pattern, handler) end

---Add a handler for all methods. Router:get has the rules of patterns.
---@param pattern string
---@param handler sxe.handler
---@return sxe.Router
function Router:any(pattern, handler) end

---Add a handler for the methods of a list. Methods are in capital letters, or an error is raised; a method that HTTP
---does not have is allowed.
---@param methods string "GET,PUT"
---@param pattern string
---@param handler sxe.handler
---@return sxe.Router
function Router:route(methods, pattern, handler) end

---Add a filter, or mount files, a router or a function below a prefix. A filter runs before each handler, also of
---routers and files in this one; next() runs the rest inside it. Its results are the reply, if it returns something;
---`nil, message` is an error.
---@overload fun(self: sxe.Router, filter: fun(req: sxe.Request, res: sxe.Response, next: fun(): any, any): any, any): sxe.Router
---@param prefix string
---@param other sxe.Files|sxe.Router|sxe.handler
---@return sxe.Router
function Router:use(prefix, other) end

---Set the function that makes the replies to errors of this router, and of the routers in it that have none. Its
---results are the reply, as those of a handler.
---@param fn fun(req: sxe.Request, res: sxe.Response, err: {status: integer, message: string?, traceback: string?}): any, any
---@return sxe.Router
function Router:on_error(fn) end

---Return a list of the routes, each with its methods and its pattern.
---@return {methods: string, pattern: string}[]
function Router:routes() end

---@class sxe.Files
---@operator call: sxe.Files
local Files = {}

---Reply with one file of the directory, with its type, ETag and ranges. A missing file is the reply 404. For the index
---of a folder the name ends in a slash.
---@param res sxe.Response
---@param name string
---@return true
function Files:send(res, name) end

---@class sxe.http.proxy
---@field servers? string|string[] "127.0.0.1:3000", "https://a.example:443", "/run/app.sock"; " weight=2" may follow
---@field upstream? sxe.Proxy the servers are those of this proxy
---@field name? string in the log, "upstream"
---@field balance? "round_robin"|"least"|"client"|"path"|"header"
---@field balance_header? string
---@field max_fails? integer 3
---@field fail_timeout? sxe.seconds 10
---@field slow_start? sxe.seconds
---@field connections? integer to each server, 256
---@field idle? integer connections that are kept without a request, 32
---@field connect_timeout? sxe.seconds 3
---@field reply_timeout? sxe.seconds 60
---@field stall_timeout? sxe.seconds 60
---@field idle_timeout? sxe.seconds 15
---@field check? string a path that is requested from each server
---@field check_interval? sxe.seconds 5
---@field check_rises? integer 2
---@field check_falls? integer 3
---@field websockets? integer 256
---@field websocket_timeout? sxe.seconds 3600
---@field tls? boolean|sxe.tls.options for servers with https://
---@field path? string takes the place of the start of the path, up to the {rest...} of the route
---@field host? string that of the request
---@field via? string "sxe"
---@field forwarded? "x-forwarded"|"forwarded"|"none" the fields that name the client, "x-forwarded"
---@field encoded_slash? boolean paths with %2F are sent on, false
---@field request_header? string|string[] up to 8 "Name: value", with {user}, {request_id} or {client}

---@class sxe.Proxy
---@operator call: sxe.Proxy
local Proxy = {}

---Return a list of the servers, each with its counts and whether it is down.
---@return { name: string, requests: integer, failures: integer, retries: integer, under_way: integer, connections: integer, websockets: integer, is_down: boolean }[]
function Proxy:servers() end

---Make a handler that sends requests on to other servers. Call it before the loop starts; a wrong option raises an
---error.
---@param options sxe.http.proxy
---@return sxe.Proxy
function http.proxy(options) end

---Plan a server, which listens when the loop starts. Call it before that: later, and for an unknown option, it raises
---an error. A port of 0 is a free one, which the server's field `port` names after the top level's first wait.
---@param options sxe.http.serving
---@return sxe.HttpServer
function http.serve(options) end

---Make a router, a handler that finds the handler for a path. Call it before the loop starts; later it raises an error.
---@return sxe.Router
function http.router() end

---Make a handler that serves the files of a directory. Call it before the loop starts; a directory that cannot be
---opened raises an error.
---@param root string
---@param options? sxe.http.files
---@return sxe.Files
function http.static(root, options) end

return http
