-- SPDX-License-Identifier: MIT
-- For test-lua-multipart.c: at the end `done` is true, or an error.
local client, file, http, multipart, task =
  require "sxe.client", require "sxe.file", require "sxe.http", require "sxe.multipart", require "sxe.task"
done = false

local root = os.tmpname()
os.remove(root)

local function equal(got, wanted)
  if got ~= wanted then error(("got %q, wanted %q"):format(tostring(got), tostring(wanted)), 2) end
end

-- A request whose body comes in these chunks.
local function request(kind, chunks)
  local i = 0
  return {
    headers = { ["content-type"] = kind },
    chunks = function() return function() i = i + 1 return chunks[i] end end,
  }
end

local TYPE = 'multipart/form-data; charset=utf-8; boundary="B-1"'

-- Read a form from a text, in two chunks, the first of which has `cut` bytes.
local function read(text, options, cut, kind)
  return multipart.read(request(kind or TYPE, cut and { text:sub(1, cut), text:sub(cut + 1) } or { text }), options)
end

local function part(fields, bytes)
  return ("--B-1\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n"):format(fields, bytes)
end

local function fails(status, words, text, options, kind)
  local is_good, why = pcall(read, text, options, nil, kind)
  equal(is_good, false)
  equal(why.status, status)
  if not why.message:find(words, 1, true) then error(why.message .. " lacks " .. words, 2) end
end

local function wait_for_files(count)
  while #assert(file.list(root)) ~= count do task.sleep(0.001) end
end

local WHOLE = "a preamble\r\n" .. part('name="a"', "one") .. part("name=b", "") .. part('name="a"', "two\r\n--B-2") ..
  "--B-1\r\ncontent-type:  text/html\r\n" ..
  "CONTENT-disposition: Form-Data; name=\"f\"; filename=\"a%22%0D%0A%41.html\"\r\n\r\n" ..
  "<b>\r\n--B-\r\n" .. part('name="f"; filename=g', "") .. part('name="none"; filename=""', "") .. "--B-1--"

local function check(form)
  equal(form.texts.a, "one")
  equal(form.texts.b, "")
  equal(#form.parts, 5)
  equal(form.parts[3].value, "two\r\n--B-2")
  equal(form.parts[3].type, "text/plain")
  local f = form.files.f
  equal(f.name, 'a"\r\n%41.html')
  equal(f.type, "text/html")
  equal(f.size, 9)
  equal(f.head, "<b>\r\n--B-")
  equal(form.parts[5].name, "g")
  equal(form.parts[5].size, 0)
  equal(form.files.none, nil)
end

local function test_reading()
  for cut = 0, #WHOLE do
    local form <close> = read(WHOLE, nil, cut)
    check(form)
    equal(form.files.f.bytes, "<b>\r\n--B-")
  end
  local bytes = {}
  for i = 1, #WHOLE do bytes[i] = WHOLE:sub(i, i) end
  check(multipart.read(request(TYPE, bytes)))
  equal(#read("--B-1--\r\nan epilogue").parts, 0)
end

local function test_files()
  do
    local form <close> = read(WHOLE, { directory = root })
    check(form)
    equal(file.read(form.files.f.path), "<b>\r\n--B-")
    equal(file.stat(form.files.f.path).mode, 384)
    equal(form.files.f.bytes, nil)
    equal(#file.list(root), 2)
  end
  equal(#file.list(root), 0)
  do
    local form <close> = read(WHOLE, { directory = root })
    form:keep()
  end
  wait_for_files(2)
  local kept
  do
    local form <close> = read(WHOLE)
    kept = form
  end
  local is_kept, words = pcall(kept.keep, kept)
  assert(not is_kept and words:find("form:keep: the form has ended, and its files are removed", 1, true), words)
  for _, name in ipairs(file.list(root)) do file.remove(root .. "/" .. name) end
  fails(400, "ends too early", part("name=f; filename=f", "text"):rep(2), { directory = root })
  equal(#file.list(root), 0)
  local is_good, why = pcall(read, WHOLE, { directory = root .. "/none" })
  equal(is_good, false)
  assert(why:find("No such file or directory", 1, true), why)
end

-- The name and the file's name of a part with these fields.
local function names_of(fields)
  local part = read(part(fields, "") .. "--B-1--").parts[1]
  return part.field, part.name
end

local function test_heads()
  for fields, names in pairs{
    ['name="a"; filename="b"'] = { "a", "b" },
    ['NAME="a";FileName="b"'] = { "a", "b" },
    ['name = a ;\tfilename\t=\t"b" '] = { "a", "b" },
    ['filename="x; name=y; z=\\""; name="a"'] = { "a", 'x; name=y; z="' },
    ['name="a\\"b\\\\c"; filename="d\\e"'] = { 'a"b\\c', "d\\e" },
    ['name="a"; filename="dir\\"'] = { "a", "dir\\" },
    ['name="a"; name="b"; filename="c"; filename="d"'] = { "a", "c" },
    ['; ;alone; "quoted"; name="a"; filename="b";'] = { "a", "b" },
    ['name="a"; filename="b"; filename*=UTF-8\'\'c'] = { "a", "b" },
    ['name="a"; filename*=utf-8\'en\'%c3%a4%22.png'] = { "a", 'ä".png' },
    ['name="a"; filename'] = { "a", nil },
  } do
    local field, name = names_of(fields)
    equal(field, names[1])
    equal(name, names[2])
  end
  fails(400, "filename* of a part", part([[name="a"; filename*=latin-1''b]], "") .. "--B-1--")
  fails(400, "no name", part('filename="a"; x="name=b', "") .. "--B-1--")
  fails(400, "no name", part('x=";name=b', "") .. "--B-1--")
  equal(#read(part('name="a"; filename=""; filename*=UTF-8\'\'b', "") .. "--B-1--").parts, 0)
  equal(read(WHOLE, nil, nil, "Multipart/Form-Data ;BOUNDARY = B-1 ; x=y").texts.a, "one")
end

-- If no task is free, the thread of the loop removes the files.
local function test_without_tasks()
  local start, remove = task.start, file.remove
  local form = read(WHOLE, { directory = root })

  task.start = function() return nil, "no task is free" end
  file.remove = function() error "cancelled" end
  getmetatable(form).__close(form)
  task.start, file.remove = start, remove
  equal(#file.list(root), 0)
end

-- If the first try to remove a file is given up, a task tries again.
local function test_later()
  local remove = file.remove
  local form = read(WHOLE, { directory = root })

  file.remove = function() end
  getmetatable(form).__close(form)
  equal(#file.list(root), 2)
  file.remove = remove
  wait_for_files(0)
end

local function test_refusals()
  fails(415, "multipart/form-data is expected", "", nil, "application/x-www-form-urlencoded")
  fails(415, "multipart/form-data is expected", "", nil, "multipart/form-data")
  fails(400, "no boundary", "", nil, "multipart/form-data; bound=1")
  fails(400, "no boundary", "", nil, "multipart/form-data; boundary=" .. ("B"):rep(71))
  fails(415, "expected", "", nil, "")
  fails(400, "ends too early", "")
  fails(400, "ends too early", part('name="a"', "text"))
  fails(400, "no name", "--B-1\r\n\r\n\r\ntext\r\n--B-1--")
  fails(400, "no name", "--B-1\r\n\r\ntext\r\n--B-1--")
  fails(400, "no name", part("nam=a", "") .. "--B-1--")
  fails(400, "no name", "--B-1\r\nContent-Disposition: attachment; name=a\r\n\r\n\r\n--B-1--")
  fails(413, "the head of a part", "--B-1\r\nX: " .. ("x"):rep(9000) .. "\r\n\r\n")
  fails(413, "the head of a part", "--B-1\r\nX: " .. ("x"):rep(8192 - 8) .. "\r\nX:  \r\n\r\n")
  fails(400, "no name", "--B-1\r\nX: " .. ("x"):rep(8192 - 8) .. "\r\nX: \r\n\r\n\r\n--B-1--")
  fails(413, "the text before the form", ("x"):rep(9000))
  fails(413, "a boundary", "--B-1" .. ("x"):rep(200) .. "\r\n")
  fails(413, "texts: more than", part("name=a", "four") .. part("name=b", "four") .. "--B-1--", { text_max = 7 })
  fails(413, "files: more than 7 bytes", part("name=a; filename=a", "four"):rep(2) .. "--B-1--", { file_max = 7 })
  fails(413, "a file without a name", part('name=a; filename=""', "four"))
  fails(413, "more than 2 parts", part("name=a", ""):rep(3) .. "--B-1--", { parts_max = 2 })
  equal(#read(part("name=a", ""):rep(2) .. "--B-1--", { parts_max = 2, text_max = 0 }).parts, 2)
end

local function test_options()
  for _, case in ipairs{ { { nonsense = 1 }, "no option 'nonsense'" }, { { file_max = "1" }, "integer expected, got string" },
                         { { text_max = 1.5 }, "integer expected, got number" },
                         { { directory = 1 }, "string expected" },
                         { { file_max = -1 }, "file_max: 0 or more expected, got -1" } } do
    local is_good, why = pcall(read, "", case[1])
    equal(is_good, false)
    assert(why:find(case[2], 1, true), why)
  end
end

-- A client sends a form to a server.
local server = http.serve{ ip = "127.0.0.1", port = 0, handler = function(req)
  local form <close> = multipart.read(req, { directory = root, file_max = 200000 })
  local is_good, why = pcall(multipart.read, req)
  assert(not is_good and why:find("the body was read, or is being read", 1, true), why)
  return form.texts.title .. " " .. form.files.picture.name .. " " .. #file.read(form.files.picture.path)
end }

local function test_server()
  local path = root .. "/sent"
  local function send(size)
    assert(file.write(path, ("x"):rep(size)))
    return assert(client.post(("http://127.0.0.1:%d/"):format(server.port), { multipart = {
      { name = "title", value = "Cat" }, { name = "picture", file = path, filename = 'a"b.png' } } }))
  end
  equal(send(200000).body, 'Cat a"b.png 200000')
  equal(send(200001).status, 413)
  equal(client.post(("http://127.0.0.1:%d/"):format(server.port), { form = { a = 1 } }).status, 415)
  assert(file.remove(path))
  wait_for_files(0)
end

task.start(function()
  task.sleep(0)
  assert(file.mkdir(root))
  for _, test in ipairs{ test_reading, test_files, test_heads, test_without_tasks, test_later, test_refusals, test_options, test_server } do
    local is_good, why = xpcall(test, function(message)
      return type(message) == "table" and (message.message or "a table") or debug.traceback(message)
    end)
    if not is_good then io.stderr:write(why, "\n") done = why return end
  end
  server:stop()
  assert(file.remove(root))
  done = true
end)
