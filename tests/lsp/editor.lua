-- What a user does in Neovim, with its built-in client and the settings of editors/neovim. What was seen is
-- written as JSON, one object, to the file that TILECHECK_SEEN names.
package.path = vim.env.TILECHECK_EDITORS .. "/?.lua;" .. package.path
local seen = {}
local buffer = vim.api.nvim_get_current_buf()

local function wait(what, predicate)
  if not vim.wait(60000, predicate, 2) then
    error("waited in vain for " .. what)
  end
end

local function position(word, line)
  local text = vim.api.nvim_buf_get_lines(buffer, line - 1, line, true)[1]
  vim.api.nvim_win_set_cursor(0, { line, text:find(word, 1, true) - 1 })
end

local function ask(method)
  local answers = vim.lsp.buf_request_sync(buffer, method, vim.lsp.util.make_position_params(), 60000)
  return answers[next(answers)].result
end

local ok, problem = pcall(function()
  require("tilecheck").attach(buffer, vim.fn.json_decode(vim.env.TILECHECK_COMMAND))
  wait("the diagnostic", function()
    return #vim.diagnostic.get(buffer) > 0
  end)
  local found = vim.diagnostic.get(buffer)
  seen.diagnostics = found

  position("x", 5)
  seen.hover = ask("textDocument/hover").contents.value

  vim.lsp.codelens.refresh()
  wait("the code lens", function()
    return #vim.lsp.codelens.get(buffer) > 0
  end)
  seen.lenses = vim.tbl_map(function(lens)
    return lens.command.title
  end, vim.lsp.codelens.get(buffer))

  -- The menu of actions, with the first one chosen.
  seen.offered = {}
  vim.ui.select = function(items, options, choose)
    for _, item in ipairs(items) do
      table.insert(seen.offered, (options.format_item(item)))
    end
    choose(items[1], 1)
  end
  vim.api.nvim_win_set_cursor(0, { found[1].lnum + 1, found[1].col })
  vim.lsp.buf.code_action()
  wait("the edit", function()
    return #seen.offered > 0 and vim.bo.modified
  end)
  wait("the diagnostic to go", function()
    return #vim.diagnostic.get(buffer) == 0
  end)
  seen.text = vim.api.nvim_buf_get_lines(buffer, 0, -1, true)

  vim.cmd("undo")
  wait("the diagnostic to come back", function()
    return #vim.diagnostic.get(buffer) > 0
  end)
end)
if not ok then
  seen.problem = tostring(problem)
end
local file = io.open(vim.env.TILECHECK_SEEN, "w")
file:write(vim.fn.json_encode(seen))
file:close()
vim.cmd("qa!")
