-- tilecheck with the client that is built into Neovim 0.7 and later. Put this file somewhere on the runtime path
-- as lua/tilecheck.lua, and `require("tilecheck").setup()` into init.lua. Neovim 0.11 can do with less: see
-- docs/editors.md.
local M = {}

-- The folder that imports start from, for a file.
local function root_of(path)
  local marks = vim.fs and vim.fs.find({ "pyproject.toml", ".git" }, { upward = true, path = path })
  return marks and marks[1] and vim.fn.fnamemodify(marks[1], ":h") or vim.fn.fnamemodify(path, ":h")
end

function M.attach(buffer, command)
  local path = vim.api.nvim_buf_get_name(buffer)
  M.client = M.client
    or vim.lsp.start_client({
      name = "tilecheck",
      cmd = command or { "tilecheck", "server" },
      root_dir = root_of(path),
      on_exit = function()
        M.client = nil
      end,
    })
  if M.client then
    vim.lsp.buf_attach_client(buffer, M.client)
  end
end

function M.setup(command)
  vim.api.nvim_create_autocmd("FileType", {
    pattern = "python",
    callback = function(event)
      M.attach(event.buf, command)
    end,
  })
  vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave", "BufWritePost" }, {
    pattern = "*.py",
    callback = function(event)
      local client = M.client and vim.lsp.get_client_by_id(M.client)
      -- A server that is still starting has not said yet what it can do.
      local ready = client and client.server_capabilities and client.server_capabilities.codeLensProvider
      if ready and vim.lsp.buf_is_attached(event.buf, M.client) then
        vim.lsp.codelens.refresh()
      end
    end,
  })
end

return M
