-- Opens the kernel that is named, waits for its diagnostic, then edits it so that other diagnostics come. Writes
-- the wall-clock times to the file that TILECHECK_TIMES names: the first from the moment that TILECHECK_BEGIN
-- gives, before Neovim was started, the others from the edit.
package.path = vim.env.TILECHECK_EDITORS .. "/?.lua;" .. package.path
local buffer = vim.api.nvim_get_current_buf()
local times = {}

local function now()
  local seconds, micros = vim.loop.gettimeofday()
  return seconds + micros / 1e6
end

local function element()
  local found = vim.diagnostic.get(buffer)[1]
  local related = found and found.user_data.lsp.relatedInformation
  return related and related[1] and found.message:match("x%[%d+%]")
end

require("tilecheck").attach(buffer, vim.fn.json_decode(vim.env.TILECHECK_COMMAND))
local known
if vim.wait(60000, function()
  known = element()
  return known ~= nil
end, 1) then
  table.insert(times, now() - tonumber(vim.env.TILECHECK_BEGIN))
end
for shift = 2, 6 do
  vim.wait(300) -- a user reads before the next edit
  local line = vim.fn.search("index=(i +") - 1
  local begin = now()
  vim.api.nvim_buf_set_lines(buffer, line, line + 1, true, { "    ct.store(x, index=(i + " .. shift .. ",), tile=t)" })
  if vim.wait(60000, function()
    local other = element()
    local changed = other ~= nil and other ~= known
    known = changed and other or known
    return changed
  end, 1) then
    table.insert(times, now() - begin)
  end
end
local file = io.open(vim.env.TILECHECK_TIMES, "w")
file:write(vim.fn.json_encode(times))
file:close()
vim.cmd("qa!")
