-- SPDX-License-Identifier: MIT
-- file.write with atomic = true, by docs/lua-handlers.md: the new file's permissions, and what it never replaces.

local cli = require "cli"

local directory = os.tmpname() .. ".d"

local function run(text)
    os.execute("rm -rf " .. directory .. "; mkdir " .. directory)
    local ran = cli.run("sxe-lua", "-e", ([[
        local file, task = require "sxe.file", require "sxe.task"
        local function at(name) return "DIR/" .. name end
        local function sh(text) assert(os.execute("cd DIR && " .. text)) end
        local function mode(name) return ("%o"):format(file.stat(at(name)).mode) end
        ]]):gsub("DIR", directory) .. text)
    os.execute("rm -rf " .. directory)
    equal(ran.status, 0, ran.errors)
    return ran.output
end

-- promise: docs/lua-handlers.md: The new file has the permissions of the file that it replaces, unless `mode` names
-- others
test("a file that is replaced keeps its permissions", function()
    equal(run[[
        for _, start in ipairs{ 0, 0.01 } do -- before the first wait, and after a wait, when another thread writes
            for _, old in ipairs{ "600", "640", "4755", "000" } do
                sh("rm -f a; umask 0; : >a; chmod " .. old .. " a")
                assert(file.write(at "a", "new", { atomic = true }))
                io.write(mode "a", " ", file.stat(at "a").size, "\n")
            end
            assert(file.write(at "a", "x", { atomic = true, mode = tonumber("640", 8) }))
            sh("umask 022; : >made")
            assert(file.write(at "other", "x", { atomic = true }))
            io.write(mode "a", " ", mode "other" == mode "made" and "as made" or mode "other", "\n")
            sh "rm other made"
            task.sleep(start)
        end]], ("600 3\n640 3\n4755 3\n0 3\n640 as made\n"):rep(2))
end)

-- promise: docs/lua-handlers.md: Anything but a plain file, a device for instance, is not replaced: code 22.
test("no device, socket or fifo is replaced by a file", function()
    equal(run[[
        sh "mkfifo fifo; ln -s fifo link; ln -s none dangling; : >plain; ln -s plain good; mkdir d"
        task.sleep(0)
        for _, name in ipairs{ "fifo", "link", "d", "dangling", "good" } do
            print(name, select(3, file.write(at(name), "x", { atomic = true })))
        end
        print(file.stat(at "fifo").type, file.stat(at "good", { link = true }).type, file.read(at "good"),
              #file.read(at "plain"), #file.list(at ""))]],
          "fifo\t22\nlink\t22\nd\t21\ndangling\ngood\nother\tfile\tx\t0\t6\n")
end)
