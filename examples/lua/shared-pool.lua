-- SPDX-License-Identifier: MIT
-- Does the jobs of ../shared-pool.c:   sxe-lua examples/lua/shared-pool.lua FILE
-- Any number of these may run. If one is killed, another does its unfinished job again, 1 s later.

local pool, task = require "sxe.pool", require "sxe.task"
local jobs

jobs = assert(pool.open{
  name = "jobs", count = 8, file = arg[1], fields = "u64 tries, char[24] word",
  states = { "FREE", "READY", "BUSY" }, timeouts = { BUSY = 1 },
  on_timeout = function(job, lease) jobs:move(job, "READY", "BUSY", lease) end,
})

local function work(job, lease)
  local try = jobs:add(job, "tries")

  print(try == 1 and "begin" or "again", job.word)
  task.sleep(0.05)
  print("end", job.word)
  jobs:move(job, "FREE", "BUSY", lease) -- no effect if this took too long: then another has the job
end

io.stdout:setvbuf("line")
print("pool", jobs.found)
while true do work(jobs:take("READY", "BUSY", math.huge)) end
