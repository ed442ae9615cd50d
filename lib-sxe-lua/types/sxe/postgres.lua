---@meta sxe.postgres
-- SPDX-License-Identifier: MIT

---Queries of PostgreSQL, with transactions, pipelines, COPY and notifications. It is there in programs that were
---built with libpq.
---@class sxe.postgres
---@field null lightuserdata a null of the server; json.null
local postgres = {}

---@class sxe.postgres.options
---@field conninfo? string a connection string or URI of libpq
---@field host? string a name, an address, or the directory of a unix socket
---@field port? integer
---@field user? string
---@field password? string
---@field database? string
---@field application_name? string "sxe"
---@field tls? boolean|sxe.tls.options true: verify the host against the system's authorities
---@field max? integer connections at most, 10
---@field waiters? integer tasks that wait for a connection at most, 1000
---@field timeout? sxe.seconds of a call, 30
---@field connect_timeout? sxe.seconds that of conninfo, or 5
---@field cancel_timeout? sxe.seconds to have the server cancel a query, 5
---@field idle_timeout? sxe.seconds after which an unused connection is closed, 60
---@field prepare? boolean whether statements are prepared by name, true
---@field statements? integer prepared statements of a connection at most, 100
---@field rows_max? integer rows of a result, 100000
---@field bytes_max? integer bytes of a result, 64 MiB
---@field arrays? boolean rows as lists, false

---A query with options of its own.
---@class sxe.postgres.query
---@field [1] string
---@field timeout? sxe.seconds
---@field prepare? boolean
---@field rows_max? integer
---@field bytes_max? integer
---@field arrays? boolean

---@class sxe.postgres.rows
---@field [integer] table a row
---@field n integer rows that were returned or changed
---@field columns string[]
---@field command string "INSERT 0 1"

---What the server said of an error.
---@class sxe.postgres.error
---@field sqlstate? string
---@field severity? string
---@field message? string
---@field detail? string
---@field hint? string
---@field position? string
---@field context? string
---@field schema? string
---@field table? string
---@field column? string
---@field datatype? string
---@field constraint? string
---@field routine? string

---A pool of connections.
---@class sxe.Postgres
local Postgres = {}

---Send a query with its values: the rows; or nil, message, SQLSTATE, and what the server said.
---@param query string|sxe.postgres.query
---@param ... any
---@return sxe.postgres.rows? rows, sxe.error? why, string? code, sxe.postgres.error? fields
function Postgres:query(query, ...) end

---Send any number of statements without values.
---@param query string|sxe.postgres.query
---@return true? ok, sxe.error? why, string? code, sxe.postgres.error? fields
function Postgres:exec(query) end

---Iterate over the rows of a result of any size, which come in portions. The loop has a connection until it ends, and
---raises errors.
---@param query string|sxe.postgres.query
---@param ... any
---@return fun(cursor: table): table? step, table cursor, nil first, table closing
function Postgres:rows(query, ...) end

---The options of a pipeline.
---@class sxe.postgres.pipeline.options
---@field timeout? sxe.seconds of the whole pipeline
---@field prepare? boolean
---@field rows_max? integer of each result
---@field bytes_max? integer of all results together
---@field arrays? boolean

---In a pipeline's list, in place of the rows of a query that failed.
---@class sxe.postgres.failure
---@field error sxe.error
---@field code? string
---@field fields? sxe.postgres.error

---Queries that are sent together.
---@class sxe.PostgresPipeline
local Pipeline = {}

---Add a query with its values.
---@param sql string
---@param ... any
---@return sxe.PostgresPipeline
function Pipeline:query(sql, ...) end

---End a group: the queries before are committed or undone together.
---@return sxe.PostgresPipeline
function Pipeline:sync() end

---Send the queries: their results; or nil, and what the first error is, and all results.
---@return sxe.postgres.rows[]? results, sxe.error? why, string? code, sxe.postgres.error? fields, table? all
function Pipeline:exec() end

---Make a pipeline, which collects queries and sends them together in one round trip. Nothing is sent before
---Pipeline:exec; the server commits all queries of a group, or none.
---@param options? sxe.postgres.pipeline.options
---@return sxe.PostgresPipeline
function Postgres:pipeline(options) end

---Send data by COPY FROM STDIN, and return the number of rows. If the source fails or raises an error, nothing is
---copied.
---@param query string|sxe.postgres.query
---@param source string|fun(): string?
---@return integer? number, sxe.error? why, string? code, sxe.postgres.error? fields
function Postgres:copy_in(query, source) end

---Iterate over the rows of COPY TO STDOUT, each with its line end. The loop has a connection until it ends, and raises
---errors.
---@param query string|sxe.postgres.query
---@return fun(cursor: table): string? step, table cursor, nil first, table closing
function Postgres:copy_out(query) end

---@class sxe.postgres.message
---@field channel string
---@field payload string
---@field pid integer the server's process that sent it

---@class sxe.PostgresSubscription
local Subscription = {}

---Wait for the next notification.
---@param timeout? sxe.seconds
---@return sxe.postgres.message? message, sxe.error? why, string? code
function Subscription:read(timeout) end

---Iterate over notifications, until the subscription is closed. The loop waits for each, and raises other errors.
---@return fun(): sxe.postgres.message?
function Subscription:messages() end

---Close the subscription and its connection, which counts against `max` until then. A <close> variable does so at the
---end of its scope.
function Subscription:close() end

---Listen to channels, and return a subscription when the server has confirmed all of them. It has a connection of its
---own until it is closed. A connection that ended is not made again, because notifications were missed.
---@param channels string[]
---@return sxe.PostgresSubscription? sub, sxe.error? why, string? code, sxe.postgres.error? fields
function Postgres:listen(channels) end

---@class sxe.PostgresTransaction
local Transaction = {}

---Send a query with its values in the transaction. After a query that failed, the transaction is rolled back and fails
---with that error. Call it in the function's own task, one call at a time.
---@param query string|sxe.postgres.query
---@param ... any
---@return sxe.postgres.rows? rows, sxe.error? why, string? code, sxe.postgres.error? fields
function Transaction:query(query, ...) end

---Send any number of statements without values in the transaction. After an error the transaction is rolled back.
---@param query string|sxe.postgres.query
---@return true? ok, sxe.error? why, string? code, sxe.postgres.error? fields
function Transaction:exec(query) end

---Make a pipeline in the transaction. If one of its queries fails, the transaction fails.
---@param options? sxe.postgres.pipeline.options
---@return sxe.PostgresPipeline
function Transaction:pipeline(options) end

---Iterate over the rows of a SELECT of any size, by a cursor in the server. The loop may send other queries, and raises
---errors.
---@param query string|sxe.postgres.query
---@param ... any
---@return fun(loop: table): table? step, table loop, nil first, table closing
function Transaction:rows(query, ...) end

---Send data by COPY FROM STDIN in the transaction, and return the number of rows. If the source fails, nothing is
---copied.
---@param query string|sxe.postgres.query
---@param source string|fun(): string?
---@return integer? number, sxe.error? why, string? code, sxe.postgres.error? fields
function Transaction:copy_in(query, source) end

---Call a function inside of a savepoint.
---@param fn fun(tx: sxe.PostgresTransaction): ...
---@return true? ok, any result, any ...
function Transaction:transaction(fn) end

---@class sxe.postgres.transaction.options
---@field isolation? "read committed"|"repeatable read"|"serializable"
---@field read_only? boolean
---@field deferrable? boolean
---@field retries? integer after a conflict with others, 0

---Call a function with a transaction, and commit when it returns. Returns true and its results, or nil, why, code,
---fields. If the function returns false or a query fails, everything is undone; so it is if it raises an error, which
---is raised.
---@param fn fun(tx: sxe.PostgresTransaction): ...
---@param options? sxe.postgres.transaction.options
---@return true? ok, any result, any ...
function Postgres:transaction(fn, options) end

---Close the client: its calls fail with "closed".
function Postgres:close() end

---Make a pool of connections to one database. The first query opens the first connection, so a server that is down is
---an error of that query. An unknown option raises an error; close the pool, or keep it in a <close> variable.
---@param options sxe.postgres.options|string
---@return sxe.Postgres
function postgres.new(options) end

---Make a value for a query of bytes, for a column of the type bytea.
---@param bytes string
---@return string
function postgres.bytea(bytes) end

---Make a value for a json or jsonb column of anything that JSON can have.
---@param value any
---@return string
function postgres.json(value) end

---Make a value for a query of a list, whose lists become dimensions. A null among the items is postgres.null.
---@param list any[]
---@return string
function postgres.array(list) end

return postgres
