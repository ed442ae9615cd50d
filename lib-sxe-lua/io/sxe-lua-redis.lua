-- SPDX-License-Identifier: MIT
--
-- require "sxe.redis": commands of Redis as calls that return. It gets from sxe-lua-redis.c what reads and writes the
-- protocol, and returns the module.
--
-- A link is a connection; calls are the commands that wait for a reply in it, in the order in which they were sent.
-- No task reads for all: the task whose command is alone reads, gives the replies of others to them, and when it has its own
-- the next task reads on.
--
--   db:call -> take_link: the link with the fewest calls, or a new one -> send -> lead: deliver, fill -> its reply
--                                                                             or follow: another task reads
--   db:blpop, handles -> take_own: a link that nobody shares -> the same -> a spare link, or closed
--
-- A call that ends without its reply leaves its place in the order. Its link takes no more commands, and is closed as
-- soon as no other call waits in it: a reply never reaches another call than its own.
--
-- A task may be interrupted by others at any place, except in an atomic function. It may end at any place: cancelled, by
-- its limit of CPU time, or without memory. What it wrote or read for others is taken over by the next one if it is whole,
-- and otherwise its link ends. fill and next of a reader do all or nothing; between a reply that next returned and the
-- call that has it, `given` is less than the reader's number. Functions that insist may be cut off once, and then do the
-- rest: so each of their steps can be repeated.
local c = ...
local json, task, tcp = require "sxe.json", require "sxe.task", require "sxe.tcp"
local concat, move, remove, unpack = table.concat, table.move, table.remove, table.unpack
local find, upper = string.find, string.upper
local error, ipairs, max, min, pcall = error, ipairs, math.max, math.min, pcall
local rawget, setmetatable, type = rawget, setmetatable, type

local atomic = c.atomic
local commands = c.open_commands(c)
local checks = c.open_options(c)
local encode, methods_of, wait_of = commands.encode, commands.methods_of, commands.wait_of

local A_TURN <const> = 1e-6 -- seconds: a wait of one turn of the loop
local SHARE <const> = 32    -- calls that wait in each link before another is opened
local PIECES <const> = 100  -- commands that are written by one call
local BATCH <const> = 65536 -- bytes that are written by one call, if they are of several commands
local NEVER <const> = commands.NEVER
local WRITER_ENDED <const>, READER_ENDED <const> =
  "redis: the task that wrote for others ended", "redis: the task that read for others ended"

local OPTIONS <const> = {
  host = "string", port = "number", unix = "string", user = "string", password = "string", db = "number",
  size = "number", handles = "number", timeout = "number", reply_max = "number", protocol = "number",
  tls = "boolean or table", sentinels = "table", master = "string", sentinel_user = "string",
  sentinel_password = "string",
}
local DEFAULTS <const> = {
  host = "127.0.0.1", port = 6379, db = 0, size = 4, handles = 16, timeout = 5, reply_max = 64 << 20, protocol = 3,
}

local function left_of(deadline)
  return max(deadline - c.now(), A_TURN)
end

-- ---- Links ----

local function forget(link)
  for i, one in ipairs(link.list) do
    if one == link then remove(link.list, i) end
  end
end

-- Wake the tasks that wait for a link, so that they look again. This works without memory, too.
local tell_waiting = c.insist(function(pool)
  local ok, fresh = pcall(task.event)

  pool.changed:set()
  if ok then pool.changed = fresh else pool.changed:clear() end
  pool.waiting = 0
end)

-- End a link, and with it all calls that wait in it.
local end_link = atomic(function(link, why, code)
  if link.is_ended then return end
  if not link.is_over then link.why, link.code, link.is_over = why, code, true end
  forget(link)
  if link.conn then link.conn:close() end
  if link.conn and (link.is_subscribed or link.first <= link.last) then c.reset(link.conn) end -- stop its replies
  for i = link.first, link.last do
    local call = link.calls[i] or {} -- this call's task may have ended while it noted a reply

    if not call.is_done then
      call.why, call.code, call.is_unsent, call.is_done = link.why, link.code, i > link.taken, true
    end
    if call.event then call.event:set() end
  end
  tell_waiting(link.pool)
  link.leader, link.live, link.is_ended = nil, 0, true
end)

-- End a link whose server ended it, or sent nonsense. If this client has ended it, a task that still reads it or writes to
-- it finds the socket closed, which is no failure of the server.
local lose_link = atomic(function(link, why, code)
  if link.is_ended then return end
  link.pool.losses = link.pool.losses + 1
  end_link(link, why, code)
end)

-- Add a reply to a call. Returns true if the call has all its replies.
local function add_reply(call, kind, value, code)
  local values = call.values

  call.missing = call.missing - 1
  if code == "READONLY" and call.link.pool.sentinel then call.link.is_retired = true end -- the master has changed
  if values and not call.is_gone then
    if kind == "error" then
      value = { error = value, code = code }
      call.errors = call.errors or {}
      call.errors[#values + 1] = value
    end
    values[#values + 1] = value
  elseif kind == "error" then
    call.why, call.code = value, code
  else
    call.value, call.why, call.code = value, nil, nil
  end
  call.is_done = call.missing == 0
  return call.is_done
end

-- Take the first call, which has all its replies, out of its link.
local function end_call(link, call)
  if call.event then call.event:set() end
  link.calls[link.first] = nil
  link.first = link.first + 1
  if not call.is_gone then link.live = link.live - 1 end
end

-- Give a call that wants a list the replies that need no look at them. Returns whether there were any.
local function deliver_list(link, call)
  local taken = c.take(link.reader, call.values, call.count - call.missing, call.missing)

  if taken == 0 then return false end
  call.missing = call.missing - taken
  call.is_done = call.missing == 0
  if call.is_done then end_call(link, call) end
  link.given = link.given + taken
  return true
end

-- Give the bytes that came to the calls, as replies. A call whose task has gone gets no values.
local deliver = atomic(function(link)
  repeat
    local call = link.calls[link.first]

    if not (call and call.values and not call.is_gone and deliver_list(link, call)) then
      local kind, value, code = c.next(link.reader, call and call.is_gone)

      if kind == "bad" then return lose_link(link, value) end
      if kind and kind ~= "push" then
        if not call then return lose_link(link, "redis: the server sent a reply that no command asked for") end
        if add_reply(call, kind, value, code) then end_call(link, call) end
      end
      if not kind then break end
      link.given = link.given + 1
    end
  until link.is_over
  if link.is_retired and link.live == 0 then end_link(link, "closed") end
end)

-- Let the task of the next call read.
local function hand_over(link)
  for i = link.first, link.last do
    local call = link.calls[i]

    if call.event and not call.is_gone then
      call.event:set()
      link.leader = call
      return
    end
  end
  link.leader = nil
end

local function count_live(link)
  local live = 0

  for i = link.first, link.last do live = live + (link.calls[i].is_gone and 0 or 1) end
  return live
end

-- End a call when its task goes on to something else, perhaps before the reply came.
local calls = { __close = c.insist(function(call)
  local link = call.link

  if not call.is_placed or link.writer == call then return end_link(link, WRITER_ENDED) end
  if link.is_over or link.leader == call and link.given < c.number(link.reader) then return end_link(link, READER_ENDED) end
  if not call.is_done then
    call.is_gone, link.is_retired = true, true
    link.live = count_live(link)
    if link.live == 0 then return end_link(link, "closed") end
  end
  if link.leader == call then hand_over(link) end
end) }

-- Give a call its place in the order; true: its task is to write its bytes, and those that others leave to it meanwhile.
-- Nothing is done in a link that is over.
local place = atomic(function(link, call, bytes)
  local last = link.last + 1

  if link.is_over then
    call.is_placed, call.is_done, call.why, call.code, call.is_unsent = true, true, link.why, link.code, true
    return
  end
  link.calls[last] = call
  if link.writer then
    link.output[#link.output + 1] = bytes
  else
    link.writer, link.taken = call, last
  end
  link.last, link.live = last, link.live + 1
  call.is_placed = true
  return link.writer == call
end)

-- Take commands that others left for this task to write: a list of their bytes, so that large ones need not be copied
-- into one string. What follows a large one waits until that is written: if this task ends before, another connection
-- gets the rest. nil: there are none, and the next call writes its own.
local take_output = atomic(function(link)
  local list, count = link.output, 1
  local size = list[1] and #list[1]

  if not size then
    link.writer = nil
    return nil
  end
  while list[count + 1] and size + #list[count + 1] <= BATCH do count, size = count + 1, size + #list[count + 1] end
  link.output, link.taken = move(list, count + 1, #list, 1, {}), link.taken + count
  if count > PIECES then return { concat(list, "", 1, count) } end
  return list[count + 1] and move(list, 1, count, 1, {}) or list
end)

local function send(link, call, bytes)
  local ok, why, code
  local list = { bytes }

  repeat
    link.conn.timeout = left_of(call.deadline)
    ok, why, code = link.conn:write(unpack(list))
    list = ok and take_output(link)
  until not list
  if ok then return end
  link.writer = nil
  if why ~= "timeout" and why ~= "cancelled" then return lose_link(link, why, code) end
  if not call.is_done then call.is_done, call.why, call.code = true, why, code end
  end_link(link, "redis: the command before it in its connection was cut off")
end

-- Whether the task of a call has to read; otherwise it waits for its event.
local become_leader = atomic(function(link, call)
  if link.leader then
    call.event = task.event()
    return false
  end
  link.leader = call
  return true
end)

-- Read until the call has its reply. The task that read before may have left bytes in the reader. Pushes may come without
-- end: what comes after the deadline is looked at once.
local function lead(link, call)
  deliver(link)
  while not call.is_done do
    local is_late = c.now() >= call.deadline
    local ok, why, code = c.fill(link.reader, link.conn, left_of(call.deadline))

    if ok then
      deliver(link)
      if is_late and not call.is_done then return "timeout" end
    elseif why == "timeout" or why == "cancelled" then
      return why, code
    else
      lose_link(link, why == "closed" and "redis: the connection ended before the reply" or why, code)
    end
  end
end

-- Wait for the replies of the call, which another task reads; if that task stops first, this one may have to read.
local function follow(link, call)
  while not call.is_done do
    local ok, why = call.event:wait(left_of(call.deadline))

    if not ok then return why end
    call.event:clear()
    if link.leader == call then return lead(link, call) end
  end
end

-- A call that expects `count` replies, or one if count is nil; its values are a list unless only the last one is
-- wanted.
local function new_call(link, deadline, count, is_last)
  return setmetatable({ link = link, deadline = deadline, count = count or 1, missing = count or 1,
    values = count and not is_last and c.new_list(count) }, calls)
end

local function begin(call, bytes)
  if place(call.link, call, bytes) then send(call.link, call, bytes) end
end

-- Wait for the replies of a call that began: the value, or the list and its errors by their place; or nil, why, code. A
-- fourth result that is true: the bytes were certainly not sent.
local function finish(call)
  local why, code

  if not call.is_done then
    if become_leader(call.link, call) then why, code = lead(call.link, call) else why, code = follow(call.link, call) end
    if why then return nil, why, code end
  end
  if call.why then return nil, call.why, call.code, call.is_unsent end
  return call.values or call.value, call.errors
end

-- Send bytes, and wait for one reply; or, with a count, for this many, as a list in which an error is a table.
local function exchange(link, bytes, deadline, count, is_last)
  local call <close> = new_call(link, deadline, count, is_last)

  begin(call, bytes)
  return finish(call)
end

-- ---- Opening ----

local function is_unknown(why)
  return why ~= nil and find(why, "unknown command", 1, true) ~= nil
end

-- Introduce this client to the server. A server that does not know HELLO speaks RESP2.
local function greet(link, deadline)
  local options = link.pool.options
  local user, password = options.user, options.password
  local is_old = options.protocol == 2
  local _, why, code

  if not is_old then
    local auth = password and { "AUTH", user or "default", password } or {}

    _, why, code = exchange(link, c.encode("HELLO", 3, unpack(auth)), deadline)
    is_old = is_unknown(why)
    if why and not is_old then return nil, why, code end
  end
  if is_old and password then
    _, why, code = exchange(link, user and c.encode("AUTH", user, password) or c.encode("AUTH", password), deadline)
    if why then return nil, why, code end
  end
  if options.is_readonly then return exchange(link, c.encode("READONLY"), deadline) end
  if options.db == 0 then return true end
  return exchange(link, c.encode("SELECT", options.db), deadline)
end

local function connect(link, deadline)
  local options, sentinel = link.pool.options, link.pool.sentinel
  local host, port = options.host, options.port
  local ok, why, code

  if options.connect_timeout then deadline = min(deadline, c.now() + options.connect_timeout) end
  if options.unix then
    link.conn, why, code = tcp.connect("unix:" .. options.unix, { timeout = left_of(deadline) })
  else
    if sentinel then
      host, port, code = sentinel:find(link, deadline)
      if not host then return nil, port, code end
      deadline = sentinel:end_of_attempt(deadline)
    end
    link.conn, why, code = tcp.connect(host, port, { timeout = left_of(deadline), tls = options.tls })
  end
  if not link.conn then return nil, why, code end
  ok, why, code = greet(link, deadline)
  if ok and sentinel then ok, why, code = sentinel:verify(link, host, port, deadline) end
  if not ok then return nil, why, code end
  if link.is_over then return nil, "closed" end
  return link
end

-- Make a link for the holder's task to open. Only an atomic function may call this, because it counts.
local function new_link(pool, list, holder)
  local link = { pool = pool, list = list, calls = {}, first = 1, last = 0, live = 0, given = 0, taken = 0,
    output = {}, is_opening = true, reader = c.new_reader(pool.options.reply_max) }

  holder.link = link
  list[#list + 1] = link
  return link
end

local function open_link(link, deadline)
  local pool = link.pool
  local ok, why, code = connect(link, deadline)

  if not ok then
    if why == "cancelled" then return nil, why end
    pool.failures, pool.why, pool.code = pool.failures + 1, why, code
    if pool.sentinel then pool.sentinel:fail(link) end
    return nil, why, code
  end
  link.is_opening = nil
  tell_waiting(pool)
  return link
end

-- The link with the fewest calls; nil: no link takes commands.
local function best_link(pool)
  local best

  for i = #pool.links, 1, -1 do
    local link = pool.links[i]

    if not link.is_opening and link.live == 0 and not link.is_retired and not c.is_idle(link.conn) then
      end_link(link, "closed") -- the server closed it
    elseif not link.is_opening and not link.is_retired and (not best or link.live < best.live) then
      best = link
    end
  end
  return best
end

-- Whether a link is to be opened for a command that finds none with room: not while one is being opened for less than
-- SHARE commands.
local function is_short_of_links(pool)
  local openings = 0

  if #pool.links >= pool.options.size then return false end
  for _, link in ipairs(pool.links) do openings = openings + (link.is_opening and 1 or 0) end
  return pool.waiting >= SHARE * openings
end

-- The link for a command, which is new if it is_opening; or nil, an event of when to choose again.
local choose_link = atomic(function(pool, holder)
  local best = best_link(pool)

  if best and (best.live < SHARE or #pool.links >= pool.options.size) then return best end
  if is_short_of_links(pool) then return new_link(pool, pool.links, holder) end
  pool.waiting = pool.waiting + 1
  return nil, pool.changed
end)

-- ---- Links that are not shared ----

-- Choose a link that only the holder's task uses; the results are those of choose_link.
local choose_own = atomic(function(pool, holder)
  local owned = pool.owned

  for i = #owned, 1, -1 do
    local link = owned[i]

    if link and link.is_spare and c.is_idle(link.conn) then
      holder.link = link
      link.is_spare = nil
      return link
    end
    -- The server closed it. Its end takes memory, so the collector may end others, too.
    if link and link.is_spare then end_link(link, "closed") end
  end
  if #owned < pool.options.handles then return new_link(pool, owned, holder) end
  return nil, pool.changed
end)

-- Whether a task that needs a link goes on, after an attempt to open one that failed.
local function may_go_on(pool, why, code, deadline)
  return pool.sentinel and not pool.is_closed and pool.sentinel:may_go_on(why, code, deadline)
end

local collect_after = 0

-- Collect garbage, which closes the links of forgotten subscriptions, and of transactions whose coroutines were
-- dropped. At most a tenth of the time is spent on this.
local function collect_links()
  local began = c.now()

  if began < collect_after then return false end
  collectgarbage()
  collect_after = began + 10 * (c.now() - began)
  return true
end

local function take(pool, choose, deadline, holder)
  local failures, is_collected = pool.failures, choose ~= choose_own

  while not pool.is_closed do
    local link, changed = choose(pool, holder)
    local ok, why, code

    if link and not link.is_opening then return link end
    if link then
      ok, why, code = open_link(link, deadline)
      if ok then return link end
      end_link(link, why, code)
    elseif not is_collected and collect_links() then
      is_collected, ok = true, true
    else
      local due = is_collected and deadline or min(deadline, collect_after)

      ok, why = changed:wait(left_of(due))
      if not ok and (why ~= "timeout" or due == deadline) then return nil, why end
      ok, why, code = pool.failures == failures, pool.why, pool.code
    end
    if not ok and not may_go_on(pool, why, code, deadline) then return nil, why, code end
  end
  return nil, "closed"
end

-- Retire a link: it takes no more commands, and ends after the commands that wait in it.
local function retire(link)
  link.is_retired = true
  if link.live == 0 then end_link(link, "closed") end
end

-- A holder keeps a link that its task opens or uses alone. At its end other tasks may use the link; but it is closed if
-- it is not open yet, if a reply is missing, or if the server keeps a state for it.
local function end_holder(holder)
  local link = holder.link

  if not link or link.is_ended then return end
  if link.is_opening or holder.is_dirty or link.is_over then return end_link(link, "closed") end
  if link.pool.is_closed then return retire(link) end
  if link.list == link.pool.owned then link.is_spare = true end
  tell_waiting(link.pool)
  holder.link = nil
end

local holders = { __close = c.insist(end_holder) }

local function new_holder()
  return setmetatable({}, holders)
end

-- Only the coroutine of a transaction refers to the guard of its holder: if a function yields, and its coroutine is
-- dropped, the collector finds the guard.
local end_guard = c.insist(function(guard) end_holder(guard.holder) end)
local guards = { __close = end_guard, __gc = end_guard }

local function new_guard()
  return setmetatable({ holder = {} }, guards)
end

-- Exchange in a shared link. If the bytes were certainly not sent, another link sends them.
local function exchange_shared(pool, bytes, deadline, count, is_last)
  local value, why, code, is_unsent

  repeat
    local holder <close> = new_holder()
    local link

    link, why, code = take(pool, choose_link, deadline, holder)
    if not link then return nil, why, code, true end
    value, why, code, is_unsent = exchange(link, bytes, deadline, count, is_last)
  until not is_unsent
  return value, why, code
end

-- Exchange in a link that is not shared, for a command that may wait in the server.
local function exchange_own(pool, bytes, wait, deadline, count, is_last)
  local holder <close> = new_holder()
  local link, why, code = take(pool, choose_own, deadline, holder)

  local value, is_unsent

  if not link then return nil, why, code, true end
  link.is_blocking = true
  value, why, code, is_unsent = exchange(link, bytes, c.now() + min(pool.options.timeout + wait, NEVER), count, is_last)
  link.is_blocking = nil
  return value, why, code, is_unsent
end

-- ---- The module ----

local core -- functions for the other files, filled at the end of this one
local POOL <const> = {} -- the field of a db that holds its pool: no command has that name
local Db = {}

-- No tail call: the db is not collected, and so closed, as long as one of its calls waits.
local function call(db, name, ...)
  local pool = rawget(db, POOL)
  local bytes = encode(name, ...)
  local wait = wait_of(upper(name), ...)
  local value, why, code

  if wait then
    value, why, code = exchange_own(pool, bytes, wait, c.now() + pool.options.timeout)
  else
    value, why, code = exchange_shared(pool, bytes, c.now() + pool.options.timeout)
  end
  if value == nil then return nil, why, code end
  return value
end

function Db.call(db, name, ...)
  if type(name) ~= "string" then error("redis: a command is a string, not a " .. type(name), 0) end
  return call(db, name, ...)
end

local function close_pool(pool)
  pool.is_closed = true
  for _, list in ipairs{ pool.links, pool.owned } do
    while list[1] do end_link(list[1], "closed") end
  end
  tell_waiting(pool)
end

function Db.close(db)
  close_pool(rawget(db, POOL))
end

local command_methods = methods_of(call)

local metatable = {
  __index = function(_, name) return Db[name] or command_methods[name] end,
  __close = Db.close, __gc = Db.close, __name = "sxe.redis",
}

local function new_pool(options)
  return { options = options, links = {}, owned = {}, changed = task.event(), waiting = 0, failures = 0,
    losses = 0 }
end

-- ---- redis.new ----

local redis = { null = json.null }

-- Check the options that name the server.
local function check_server(options)
  local is_address = options.host ~= nil or options.port ~= nil

  if options.unix and is_address then error("redis.new: a server has unix, or host and port", 0) end
  if options.unix and options.tls then error("redis.new: unix has no tls", 0) end
  if options.sentinels and (options.unix or is_address) then
    error("redis.new: sentinels say where the server is: leave host, port and unix out", 0)
  end
  if (options.sentinels == nil) ~= (options.master == nil) or options.master == "" then
    error("redis.new: sentinels and master, the name that they know it by, go together", 0)
  end
  if not options.sentinels and (options.sentinel_user or options.sentinel_password) then
    error("redis.new: sentinel_user and sentinel_password need sentinels", 0)
  end
  if options.sentinel_user and not options.sentinel_password then
    error("redis.new: sentinel_user needs sentinel_password", 0)
  end
end

function redis.new(options)
  local all = checks.check_options("redis.new", options, OPTIONS, DEFAULTS)
  local pool

  check_server(options)
  checks.check_range("redis.new", all, "port", 1, 65535)
  checks.check_range("redis.new", all, "db", 0, checks.DB_MAX)
  checks.check_ranges("redis.new", all)
  pool = new_pool(all)
  pool.sentinel = options.sentinels and core.new_sentinel(all)
  return setmetatable({ [POOL] = pool }, metatable)
end

core = { c = c, POOL = POOL, DEFAULTS = DEFAULTS, OPTIONS = OPTIONS, begin = begin, calls = calls, checks = checks,
  choose_link = choose_link, choose_own = choose_own, close_pool = close_pool, commands = commands,
  command_methods = command_methods, end_link = end_link, exchange = exchange, exchange_own = exchange_own,
  exchange_shared = exchange_shared, finish = finish, holders = holders, left_of = left_of, new_call = new_call,
  new_guard = new_guard, new_holder = new_holder, new_pool = new_pool, retire = retire, take = take,
  tell_waiting = tell_waiting }

c.add_handles(Db, core)
c.add_sentinels(core)
c.add_routes(Db, core)
c.add_cluster(redis, Db, core)
c.add_shards(core)
c.add_sharded(redis, core)

return redis
