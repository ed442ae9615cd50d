-- SPDX-License-Identifier: MIT
-- Posts in the store, and the events that say that a post is new or changed:
--
--   seq = the number of the last event      event:NUMBER = the id of its post      post:ID = the post, as JSON

local json, task, timer = require "sxe.json", require "sxe.task", require "sxe.timer"
local worker = require "sxe.worker"
local posts = {}
posts.__index = posts
local EVENTS = 1000 -- older ones are forgotten

local function key(kind, number) return ("%s:%012d"):format(kind, number) end

-- The store tells no other process of a change, so each process looks at the number of the last event.
function posts.new(db)
  local self = setmetatable({ db = db, seq = db:get "seq", changed = task.event() }, posts)
  timer.every(0.2, function()
    local seq, changed = db:get "seq", self.changed
    if seq == self.seq then return end
    self.seq, self.changed = seq, task.event()
    changed:set()
  end)
  return self
end

function posts:get(id)
  local text = self.db:get(key("post", id))
  return text and json.decode(text)
end

-- Write a post and its event at once.
local function put(txn, post)
  local seq = 1 + tonumber(txn:get "seq" or 0)
  txn:put("seq", tostring(seq))
  txn:put(key("event", seq), tostring(post.id))
  txn:put(key("post", post.id), json.encode(post))
  if seq > EVENTS then txn:del(key("event", seq - EVENTS)) end
end

function posts:add(user, text, upload, job)
  upload = upload or {}
  local post = { user = user, text = text, time = os.time(), file = upload.file, label = upload.name }
  assert(self.db:write(function(txn)
    post.id = 1 + tonumber(txn:get "last" or 0)
    if job then job.post = post.id end
    txn:put("last", tostring(post.id))
    put(txn, post)
  end))
  return post
end

-- The newest posts, and the number of the last event that they show.
function posts:newest(count)
  local view <close>, list = assert(self.db:snapshot()), {}
  for _, text in view:each{ prefix = "post:", reverse = true } do
    list[#list + 1] = json.decode(text)
    if #list == count then break end
  end
  return list, view:get "seq" or 0
end

-- Send the events after a number, until the client is gone.
function posts:follow(events, after, render)
  local is_there = true
  while is_there do
    local changed, news = self.changed, {}
    for name, id in self.db:each{ prefix = "event:", from = key("event", after + 1) } do
      news[#news + 1] = { seq = tonumber(name:match "%d+"), id = id }
    end
    for _, one in ipairs(news) do
      after = one.seq
      is_there = is_there and events:send{ event = "post", id = after, data = render(self:get(one.id)) }
    end
    if is_there and not changed:wait(15) then is_there = events:comment() end
  end
end

local PICTURES = { ["\x89PNG"] = "png", ["GIF8"] = "gif", ["\xff\xd8\xff\xe0"] = "jpg", ["\xff\xd8\xff\xe1"] = "jpg" }

-- The end of a file's name by its first bytes, not by the name that a client gave.
function posts.ending_of(bytes) return PICTURES[bytes:sub(1, 4)] or "bin" end

function posts.is_picture(name) return not name:find "%.bin$" end

-- The job of a file: a worker reads it, which may take long.
function posts:check_file(post, path)
  post.sha256 = assert(worker.run(function(name)
    local hash, input <close> = require "sxe.crypto".new_digest "sha256", assert(io.open(name, "rb"))
    for bytes in input:lines(65536) do hash:add(bytes) end
    return require "sxe.encoding".encode_hex(hash:finish())
  end, path))
  assert(self.db:write(function(txn) put(txn, post) end))
end

return posts
