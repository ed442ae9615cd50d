-- SPDX-License-Identifier: MIT
-- A queue of jobs in a pool that all processes share. If a process is killed, another one does its job again.
--
--   FREE -> WRITING (a post is being written) -> READY -> BUSY -> FREE

local log, pool, task = require "sxe.log", require "sxe.pool", require "sxe.task"
local jobs = {}
jobs.__index = jobs
local TRIES = 5

local function run(queue, work)
  local job, lease = queue:take("READY", "BUSY", math.huge)
  if not job then return task.sleep(0.1) end -- the pool was busy
  local id, try = job.post, queue:add(job, "tries")
  local good, why = pcall(work, id)
  if good or try >= TRIES then queue:move(job, "FREE", "BUSY", lease) end -- otherwise its timeout makes it READY again
  if not good then log.warn("the job of post %d failed, try %d: %s", id, try, tostring(why)) end
end

-- Open the queue, and call work(id) for each job.
function jobs.open(path, work)
  local queue
  queue = assert(pool.open{
    name = "jobs", file = path, count = 256, fields = "u64 post, u64 tries",
    states = { "FREE", "WRITING", "READY", "BUSY" }, timeouts = { WRITING = 30, BUSY = 30 },
    on_timeout = function(job, lease) queue:move(job, "READY", job.state, lease) end,
  })
  task.start(function()
    while true do run(queue, work) end
  end)
  return setmetatable({ queue = queue }, jobs)
end

-- A job whose post will be written. Set job.post before the post exists, so that the file of no post is forgotten.
function jobs:reserve()
  return self.queue:take("FREE", "WRITING") or error{ status = 503, message = "too many files are waiting" }
end

function jobs:submit(job) self.queue:move(job, "READY", "WRITING") end

return jobs
