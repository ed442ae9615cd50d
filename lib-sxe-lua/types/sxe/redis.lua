---@meta sxe.redis
-- SPDX-License-Identifier: MIT

---Commands of Redis and Valkey, for one server, Sentinels, a cluster, or groups of servers.
---@class sxe.redis
---@field null lightuserdata a null of the server; json.null
local redis = {}

---@class sxe.redis.options
---@field host? string 127.0.0.1
---@field port? integer 6379
---@field unix? string the path of a socket, in place of host and port
---@field user? string
---@field password? string
---@field db? integer for SELECT, 0
---@field size? integer shared connections at most, 4
---@field handles? integer connections of transactions, subscriptions and blocking commands at most, 16
---@field tls? boolean|sxe.tls.options true: verify the host against the system's authorities
---@field timeout? sxe.seconds of a command, 5
---@field reply_max? integer bytes of a reply, 64 MiB
---@field protocol? 2|3 3
---@field sentinels? string[] "host:port", in place of host and port
---@field master? string the name by which the Sentinels know the master
---@field sentinel_user? string
---@field sentinel_password? string

---Any other name in small letters sends the command of that name: db:hget("hash", "field").
---@class sxe.Redis
---@field [string] fun(db: sxe.Redis, ...: string|number): any, sxe.error?, string|sxe.code?
local Redis = {}

---Send a command, and wait for its reply; nil, message, and the first word of an error.
---@param name string
---@param ... string|number
---@return any value, sxe.error? why, string|sxe.code? code
function Redis:call(name, ...) end

---Close the client: its commands fail with "closed".
function Redis:close() end

---Make a function that runs a script in the server, by its hash. The text is sent, once, to a server that does not know
---it.
---@param text string
---@return fun(keys: string[], ...: string|number): any, sxe.error?, string|sxe.code?
function Redis:prepare(text) end

---Commands that are collected, and sent in one write. Any other name in small letters adds the command of that name.
---@class sxe.Pipeline
---@field [string] fun(pipeline: sxe.Pipeline, ...: string|number): sxe.Pipeline
local Pipeline = {}

---Add a command.
---@param name string
---@param ... string|number
---@return sxe.Pipeline
function Pipeline:call(name, ...) end

---Send all commands. Returns the list of replies, in which an error is a table.
---@return any[]? replies, sxe.error? why, string|sxe.code? code
function Pipeline:exec() end

---Forget the commands.
function Pipeline:close() end

---Make a pipeline, which collects commands and sends them in one write. Nothing is sent before Pipeline:exec. Commands
---that may wait in the server, such as BLPOP, raise an error.
---@return sxe.Pipeline
function Redis:pipeline() end

---Any other name in small letters sends the command of that name: at once before multi, with the others after it.
---@class sxe.Transaction
---@field [string] fun(transaction: sxe.Transaction, ...: string|number): any, sxe.error?, string|sxe.code?
local Transaction = {}

---Keep the commands that follow, so that they are sent together when the function returns.
function Transaction:multi() end

---Send a command of any name at once before multi, and keep it for EXEC after multi. Commands that may wait in the
---server raise an error.
---@param name string
---@param ... string|number
---@return any value, sxe.error? why, string|sxe.code? code
function Transaction:call(name, ...) end

---@class sxe.redis.transaction
---@field watch? string[] keys
---@field retries? integer 10

---Call fn(transaction), and return the replies of EXEC.
---@param fn fun(transaction: sxe.Transaction): boolean?
---@param options? sxe.redis.transaction
---@return any[]? replies, sxe.error? why, string|sxe.code? code
function Redis:transaction(fn, options) end

---@class sxe.redis.message
---@field channel string
---@field text string
---@field pattern? string of psubscribe

---@class sxe.Subscription
local Subscription = {}

---Wait for the next message.
---@param timeout? sxe.seconds
---@return sxe.redis.message? message, sxe.error? why, string|sxe.code? code
function Subscription:read(timeout) end

---Iterate over messages, until the subscription is closed. The loop waits for each, and raises other errors.
---@return fun(): sxe.redis.message?
function Subscription:messages() end

---Close the subscription and its connection. A <close> variable does so at the end of its scope.
function Subscription:close() end

---Subscribe to channels, and return a subscription when the server has confirmed all of them. It has a connection of
---its own, one of `handles`, until it is closed. A connection that ended is not made again, because messages were
---missed.
---@param names string[] channels
---@return sxe.Subscription? sub, sxe.error? why, string|sxe.code? code
function Redis:subscribe(names) end

---Subscribe to the channels that match patterns, such as "news.*", as Redis:subscribe does. Each message names its
---pattern.
---@param names string[] patterns
---@return sxe.Subscription? sub, sxe.error? why, string|sxe.code? code
function Redis:psubscribe(names) end

---Make a client of one server, or of the master that Sentinels name. The first command opens the first connection, so a
---server that is down is an error of that command. An unknown option raises an error.
---@param options sxe.redis.options
---@return sxe.Redis
function redis.new(options) end

---@class sxe.redis.cluster.options
---@field seeds string[] "host:port" of some nodes
---@field read_from? "master"|"replica" where commands go that only read, "master"
---@field nodes? integer nodes at most, 100
---@field user? string
---@field password? string
---@field size? integer shared connections to a node at most, 4
---@field handles? integer connections of transactions, subscriptions and blocking commands to a node at most, 16
---@field tls? boolean|sxe.tls.options true: verify the hosts against the system's authorities
---@field timeout? sxe.seconds of a command, with its redirects, 5
---@field reply_max? integer bytes of a reply, 64 MiB
---@field protocol? 2|3 3

---A client of a cluster: the commands and handles of sxe.Redis.
---@class sxe.RedisCluster: sxe.Redis
local RedisCluster = {}

---Return a list of clients, one for each master, for the commands of one node.
---@return sxe.Redis[]? masters, sxe.error? why, string|sxe.code? code
function RedisCluster:masters() end

---Make a client of a Redis Cluster, which finds the node of each key. It reads the map of the slots with the first
---command. Commands for one node, such as SCAN, raise an error: send them to the clients of RedisCluster:masters.
---@param options sxe.redis.cluster.options
---@return sxe.RedisCluster
function redis.cluster(options) end

---@class sxe.redis.group
---@field name string letters, digits, '.', '_' and '-'
---@field masters string[] "host:port"; the first one that is up writes
---@field replicas? string[] "host:port"
---@field weight? integer share of the keys, 1

---@class sxe.redis.sharded.options
---@field groups sxe.redis.group[]
---@field hash? "ring"|"modulo" how a key finds its group, "ring"
---@field read_from? "master"|"replica" where commands go that only read, "master"
---@field check_interval? sxe.seconds between two checks of a server, 1
---@field check_timeout? sxe.seconds for a check, and to open a connection, 1
---@field failures? integer in a row that take a server down, 3
---@field successes? integer in a row that bring a server up again, 2
---@field hand_back? sxe.seconds|"manual" for which an earlier server is up before it writes again, 10
---@field retries? integer how often a command that only reads is sent again, 3
---@field backoff? sxe.seconds of the first pause before a command is sent again, 0.01
---@field user? string
---@field password? string
---@field db? integer for SELECT, 0
---@field size? integer shared connections to a server at most, 4
---@field handles? integer connections of transactions, subscriptions and blocking commands to a server at most, 16
---@field tls? boolean|sxe.tls.options true: verify the hosts against the system's authorities
---@field timeout? sxe.seconds of a command, with its repetitions, 5
---@field reply_max? integer bytes of a reply, 64 MiB
---@field protocol? 2|3 3

---@class sxe.redis.server.state
---@field address string
---@field role "master"|"replica"
---@field state "up"|"down"
---@field seconds number since the state or the role changed
---@field failures integer in a row
---@field why? sxe.error of the last failure
---@field connections integer

---@class sxe.redis.group.state
---@field name string
---@field weight integer
---@field state "ok"|"failed over"|"read-only"|"down"
---@field writer? string the address of the server that writes
---@field servers sxe.redis.server.state[]

---A client of groups of servers: the commands and handles of sxe.Redis.
---@class sxe.RedisSharded: sxe.Redis
local RedisSharded = {}

---Return a client of one group, for commands without a key.
---@param name string
---@return sxe.Redis
function RedisSharded:group(name) end

---Return the name of the group that has a key.
---@param key string|number
---@return string
function RedisSharded:group_of(key) end

---Return a list of the groups, each with its state, its writer and its servers.
---@return sxe.redis.group.state[]
function RedisSharded:state() end

---Let the first server of a group that may write do so. Returns its address.
---@param name string of a group
---@return string? address, sxe.error? why, string|sxe.code? code
function RedisSharded:hand_back(name) end

---Make a client of groups of servers without a cluster. Each key belongs to one group; servers are checked, and another
---one of the group writes when the first is down.
---@param options sxe.redis.sharded.options
---@return sxe.RedisSharded
function redis.sharded(options) end

return redis
