---@meta sxe.template
-- SPDX-License-Identifier: MIT

---HTML pages from text and values. docs/templates.md has the language of templates.
---@class sxe.template
local template = {}

---@class sxe.template.options
---@field root string the folder of the templates
---@field reload? boolean read them again at each use; false, true with --dev
---@field globals? table<string, any> names that all of them see

---Make a function of a template, which returns its text for a table of values. A syntax error raises an error.
---@param text string
---@param name? string for messages
---@return fun(values?: table): string
function template.compile(text, name) end

---Return the text of a value, where & < > " ' are escaped for HTML.
---@param value string|number|boolean|table|userdata
---@return string
function template.escape(value) end

---Make an object for the templates of a folder. A folder that does not exist raises an error.
---@param options sxe.template.options
---@return sxe.Views
function template.new(options) end

---@class sxe.Views
local Views = {}

---Return the text of a template. An error in the template is raised; a file that cannot be read is nil, message, code.
---@param name string of a file below the folder
---@param values? table
---@return string? text, sxe.error? why, sxe.code? code the file cannot be read
function Views:render(name, values) end

---Send the text of a template as the whole reply, as HTML.
---@param res sxe.Response
---@param name string
---@param values? table
---@param status? integer 200
---@return true? ok, sxe.error? why, sxe.code? code
function Views:send(res, name, values, status) end

return template
