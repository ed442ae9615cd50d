---@meta sxe.template
-- SPDX-License-Identifier: MIT

---Pages from text and values: docs/templates.md.
---@class sxe.template
local template = {}

---@class sxe.template.options
---@field root string the folder of the templates
---@field reload? boolean read them again at each use; false, true with --dev
---@field globals? table<string, any> names that all of them see

---A function that makes a text of a table of values; a syntax error raises.
---@param text string
---@param name? string for messages
---@return fun(values?: table): string
function template.compile(text, name) end

---A value's text, where & < > " ' are escaped for HTML.
---@param value string|number|boolean|table|userdata
---@return string
function template.escape(value) end

---The templates of a folder.
---@param options sxe.template.options
---@return sxe.Views
function template.new(options) end

---@class sxe.Views
local Views = {}

---The text of a template; an error in the template raises.
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
