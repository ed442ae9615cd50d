-- SPDX-License-Identifier: MIT
-- What scripts of 2011 rely on, in their manner: TAP, callbacks, globals. 37 checks.
require "sxe.tap"
plan_tests(37)

for _, log in ipairs { SXEL1, SXEL2, SXEL3, SXEL4, SXEL5, SXEL6, SXEL7, SXEL8, SXEL9 } do log("a line") end
local level = sxe.log_level
sxe.log_level = 2
is(sxe.log_level, 2, "the log level is what it was set to")
sxe.log_level = level
is(sxe.log_level, level, "and what it was before")

is(false, pcall(sxe_new_tcp), "sxe_new_tcp wants arguments")
is(false, pcall(sxe_new_tcp, "", 0, "no function"), "sxe_new_tcp wants functions: connect")
is(false, pcall(sxe_new_tcp, "", 0, nil, "no function"), "read")
is(false, pcall(sxe_new_tcp, "", 0, nil, nil, "no function"), "close")
is(false, pcall(sxe_write, ""), "sxe_write wants a socket")
pass("this passes")

local FREE, BUSY, DONE = 0, 1, 2
local pool = sxe_pool_new("taxis", 10, 3)
is(sxe_pool_get_name(pool), "taxis", "a pool has a name")
is(sxe_pool_get_number_in_state(pool, FREE), 10, "all are free at first")
is(sxe_pool_get_oldest_element_index(pool, FREE), 0, "the first is the oldest")
is(sxe_pool_index_to_state(pool, 9), FREE, "the last is free, too")
is(sxe_pool_get_oldest_element_index(pool, BUSY), nil, "none is busy")
sxe_pool_check_timeouts(pool)
sxe_pool_touch_indexed_element(pool, 0)
is(type(sxe_pool_get_indexed_element(pool, 0)), "table", "an element is a table")
is(sxe_pool_set_oldest_element_state(pool, BUSY, DONE), nil, "where there is none, none is moved")
is(sxe_pool_set_oldest_element_state(pool, FREE, BUSY), 1, "the oldest is moved")
sxe_pool_set_indexed_element_state(pool, 0, FREE, DONE)
is(sxe_pool_index_to_state(pool, 0), DONE, "a certain one is moved")
is(pcall(sxe_pool_set_indexed_element_state, pool, 0, FREE, BUSY), false, "not one that is elsewhere")

over = false
local port

sxe_register(2, function()
    local listener = sxe_new_tcp("127.0.0.1", 0, nil, function(s)
        is(s.buf:find("Frankenstein", -100), nil, "what is not there is not found")
        if s.buf:find("\r\n", -2) then
            local is_last = s.buf:ifind("eXIT\r\n", 1)
            s:write("GOT:")
            s:write(s.buf)
            s:buf_clear()
            is(s.buf_used, 0, "a cleared buffer is empty")
            s:close()
            if is_last then over = true end
        end
    end)
    is(listener:listen(), true, "a listener listens")
    listener.hello = "world"
    is(listener.hello, "world", "a socket keeps what is put there")
    is(listener.world, nil, "and nothing else")
    port = listener.local_port
    is(listener.local_addr, "127.0.0.1", "it is where it should be")
    is(listener.id, 0, "it is the first socket")
end)

sxe_register(2, function()
    local first = sxe_new_tcp("0.0.0.0", 0, function(s)
        is(s.peer_addr .. ":" .. s.peer_port, "127.0.0.1:" .. port, "it is connected to the listener")
        is(pcall(sxe_write, s, {}), false, "a table cannot be written")
        s:write("abcde\r\n")
    end, function(s)
        if s.buf:find("\r\n", s.buf_used - 2) then
            is(s.buf:find("GOT:abcde"), 1, "the answer has come")
        end
    end, function()
        local second = sxe_new_tcp("0.0.0.0", 0)
        second.onconnect = function(s) s:write("exit\r\n") end
        second.onread = function(s) if s.buf:find("GOT:exit\r\n") then s:close() end end
        second.onclose = function() fail("this is replaced") end
        second.onclose = function() pass("this is called") end
        is(second:connect("127.0.0.1", port), true, "another one connects")
    end)
    first:connect("127.0.0.1", port)
    is(pcall(sxe_spawn_kill, first, 10), false, "what is no child is not killed")
end)

sxe_register(2, function()
    is(pcall(sxe_spawn, "", "", "", "no function"), false, "sxe_spawn wants functions: connect")
    is(pcall(sxe_spawn, "", "", "", nil, "no function"), false, "read")
    is(pcall(sxe_spawn, "", "", "", nil, nil, "no function"), false, "close")
    local child = sxe_spawn("cat", nil, nil, nil, function(s) s:buf_clear() end,
        function() pass("the child has ended") end)
    local timer
    timer = sxe_timer_new(function()
        child:kill(15)
        sxe_timer_stop(timer)
    end, 0, 1)
    sxe_timer_start(timer)
end)
