-- SPDX-License-Identifier: MIT
-- worker.run and worker.map, on workers that all of a state share: one for each CPU, made when needed.

local core = ...
local try, task = core.try, require "sxe.task"
local shared = {}

core.try = nil

local function add_shared()
  local w, why, code = core.new{ code = "", name = "shared " .. #shared + 1, calls = 1 }

  shared[#shared + 1] = w
  return w, why, code
end

-- The worker with the lowest load; if all have some and another may be made, a new one. Or nil, why, code. A call whose
-- task has gone counts until its function has returned, because a function of C cannot be interrupted.
local function pick()
  local best, why, code

  for i = #shared, 1, -1 do
    if shared[i].status == "ended" then
      table.remove(shared, i)
    elseif not best or shared[i].load <= best.load then
      best = shared[i]
    end
  end
  if not best or best.load > 0 and #shared < core.cores() then
    local added

    added, why, code = add_shared()
    best = added or best
  end
  return best, why, code
end

local function check_type(value, expected, name)
  local got = type(value)

  if got ~= expected then error(("worker.%s must be a %s, not a %s"):format(name, expected, got), 3) end
end

function core.run(fn, ...)
  check_type(fn, "function", "run: fn")
  local w, why, code = pick()

  if not w then return nil, why, code end
  return w:call(fn, ...)
end

-- Run fn(item, i) in a worker. Returns whether it succeeded, and its result or the error.
local function run_item(fn, item, i)
  local w, why = pick()

  if not w then return false, why end
  local is_fine, good, result = pcall(try, w, fn, item, i)

  if is_fine then return good, result end
  return false, good
end

local function check_limit(options)
  local limit = core.cores()

  for name, value in pairs(options or {}) do
    if name ~= "workers" then error(("worker.map has no option '%s'"):format(name), 3) end
    if math.type(value) ~= "integer" or value < 1 then error("worker.map: workers must be an integer from 1 on", 3) end
    limit = math.min(limit, value)
  end
  return limit
end

function core.map(items, fn, options)
  check_type(items, "table", "map: items")
  check_type(fn, "function", "map: fn")
  if options ~= nil then check_type(options, "table", "map: options") end
  local limit, number, last, failure = check_limit(options), #items, 0, nil
  local results, tasks = { n = number }, {}

  local function cancel_all()
    for _, t in ipairs(tasks) do t:cancel() end
  end

  local function take_items()
    while last < number and not failure do
      last = last + 1
      local i = last
      local good, result = run_item(fn, items[i], i)

      if good then
        results[i] = result
      elseif not failure then
        failure = { i, result }
        cancel_all()
      end
    end
  end

  local _ <close> = setmetatable({}, { __close = cancel_all })

  for i = 1, math.min(limit, number) do
    local t, why = task.start(take_items)

    if not t then failure = failure or { i, why } break end
    tasks[i] = t
  end
  for _, t in ipairs(tasks) do
    if not t:join() and t.status ~= "done" then failure = failure or { 0, "cancelled" } end
  end
  if not failure then return results end
  if failure[1] == 0 then return nil, "cancelled" end
  if type(failure[2]) ~= "string" then return nil, failure[2], failure[1] end
  return nil, ("item %d: %s"):format(failure[1], failure[2]), failure[1]
end

return core
