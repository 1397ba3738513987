"""The language server: pygls on one side, documents and the process that verifies on the other.

Nothing of the user's code is imported or run, so a workspace need not be trusted.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from tilecheck import __version__
from tilecheck.lsp import lenses
from tilecheck.lsp.actions import EXPLAIN, PROPOSE, QUICKFIX, REFACTOR, actions, workspace_edit
from tilecheck.lsp.analysed import Analysed
from tilecheck.lsp.diagnostics import SOURCE, shown
from tilecheck.lsp.documents import Documents
from tilecheck.lsp.edits import required
from tilecheck.lsp.hover import hover_text, page, target
from tilecheck.lsp.outline import outline
from tilecheck.lsp.positions import Json, agreed_encoding
from tilecheck.lsp.uris import uri_of
from tilecheck.lsp.verifier import FailedError, RefusedError, Verifier
from tilecheck.model import Report
from tilecheck.rule import page_sections

_T = TypeVar("_T")
_CONVERTER: Any = default_converter()  # type: ignore[no-untyped-call]
_WATCHED = ("**/*.py", "**/pyproject.toml", "**/.tilecheck-baseline.json")


def _typed(kind: type[_T], value: Json) -> _T:
    typed: _T = _CONVERTER.structure(value, kind)
    return typed


def _plain(value: object) -> Json:
    plain: Json = _CONVERTER.unstructure(value)
    return plain


class TilecheckServer(LanguageServer):
    """The server of one client. Mutable: it knows what the client can do once that is told."""

    def __init__(self, verifier: Verifier) -> None:
        # Whole texts: kernels are short, and what an editor calls a line is then no question.
        super().__init__("tilecheck", __version__, types.TextDocumentSyncKind.Full)
        self.verifier = verifier
        self.documents = Documents(self._verify, self.publish)
        self.pages: Path | None = None
        self.versions: dict[str, int] = {}  # of what was published last

    async def _verify(self, path: str, data: bytes, texts: dict[str, bytes]) -> Report:
        report: Report = await self.verifier.ask("verify", path, data, texts)
        for kernel in report.kernels:
            if kernel.internal_error:
                self.log(f"a bug of tilecheck, in `{kernel.name}`:\n{kernel.internal_error}")
        return report

    # ---- what the client can do -------------------------------------------------------------------------

    def can(self, *names: str) -> Any:
        """A capability of the client, by the names of its parts; None if it is not told."""
        value: Any = self.client_capabilities
        for name in names:
            value = getattr(value, name, None)
        return value

    @property
    def pulls(self) -> bool:
        return self.can("text_document", "diagnostic") is not None

    @property
    def takes_related(self) -> bool:
        key = "diagnostic" if self.can("text_document", "diagnostic", "related_information") else ""
        return bool(self.can("text_document", key or "publish_diagnostics", "related_information"))

    @property
    def takes_versions(self) -> bool:
        return bool(self.can("workspace", "workspace_edit", "document_changes"))

    def begin(self) -> None:
        """The client has said what it can do."""
        general = self.can("general", "position_encodings")
        self.documents.encoding = agreed_encoding(general)
        root = self.workspace.root_path
        self.documents.root = root or tempfile.gettempdir()

    def log(self, text: str) -> None:
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, text))

    # ---- diagnostics ------------------------------------------------------------------------------------

    def publish(self, analysed: Analysed) -> None:
        """A document has a new result."""
        if not self.pulls:
            items = [_typed(types.Diagnostic, d) for d in self.diagnostics(analysed)]
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(analysed.uri, items, analysed.version)
            )
        # Who asks about a new text waits for its result. Nobody asks again when another file has changed.
        if self.versions.get(analysed.uri) == analysed.version:
            self._refresh()
        self.versions[analysed.uri] = analysed.version

    def _refresh(self) -> None:
        if self.pulls and self.can("workspace", "diagnostics", "refresh_support"):
            self.workspace_diagnostic_refresh(None)
        if self.can("workspace", "code_lens", "refresh_support"):
            self.workspace_code_lens_refresh(None)
        if self.can("workspace", "inlay_hint", "refresh_support"):
            self.workspace_inlay_hint_refresh(None)

    def diagnostics(self, analysed: Analysed) -> list[Json]:
        return [item.diagnostic for item in shown(analysed, related=self.takes_related)]

    def clear(self, uri: str) -> None:
        """A document was closed."""
        self.versions.pop(uri, None)
        if not self.pulls:
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    # ---- explanations -----------------------------------------------------------------------------------

    async def explain(self, word: str) -> str | None:
        """Show the page of a rule or topic: as a document where the client can, else its gist as a message."""
        text = page(word)
        if text is None:
            return None
        if self.can("window", "show_document", "support"):
            if self.pages is None:
                self.pages = Path(tempfile.mkdtemp(prefix="tilecheck-pages-"))
            file = self.pages / f"{word.replace('/', '-').partition(':')[0]}.md"
            file.write_text(text, encoding="utf-8")
            self.window_show_document(types.ShowDocumentParams(uri_of(str(file)), take_focus=True))
        else:
            sections = page_sections(text)
            gist = sections.get("What it does") or sections[""]
            more = f"{word}: {gist.strip()}\n\nThe whole page: tilecheck explain {word}"
            self.window_show_message(types.ShowMessageParams(types.MessageType.Info, more))
        return text

    # ---- contracts --------------------------------------------------------------------------------------

    async def propose(self, uri: str, name: str) -> tuple[str, ...]:
        """Write contracts above a kernel with which open obligations were proved, for the author to check."""
        analysed = await self.documents.result(uri)
        if analysed is None:
            return ()
        texts = self.documents.texts(but=self.documents.document(uri))
        found: tuple[str, ...] = ()
        with contextlib.suppress(FailedError, RefusedError):
            found = await self.verifier.ask("propose", analysed.path, analysed.data, texts, name)
        read = outline(analysed.positions().source)
        kernel = next((k for k in analysed.kernels if k.name == name), None)
        edit = None if read is None or kernel is None else required(read, kernel, found)
        if edit is None:
            message = f"no contracts were found that decide `{name}`"
            self.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))
        else:
            changes = _typed(types.WorkspaceEdit, workspace_edit(analysed, edit, versioned=self.takes_versions))
            self.workspace_apply_edit(types.ApplyWorkspaceEditParams(changes, "contracts"))
        return found

    async def end(self) -> None:
        """Stop what runs, and remove what was written."""
        await self.documents.stop()
        self.verifier.stop()
        if self.pages is not None:
            for file in self.pages.iterdir():
                file.unlink()
            self.pages.rmdir()
            self.pages = None


def create(verifier: Verifier) -> TilecheckServer:
    """A server with everything that it offers."""
    server = TilecheckServer(verifier)
    _lifecycle(server)
    _synchronisation(server)
    _requests(server)
    return server


def _lifecycle(server: TilecheckServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(_: types.InitializeParams) -> None:
        server.begin()
        if server.pulls:
            options = types.DiagnosticOptions(
                inter_file_dependencies=True, workspace_diagnostics=False, identifier=SOURCE
            )
            server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)(_pull(server))

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        if not server.can("workspace", "did_change_watched_files", "dynamic_registration"):
            return
        watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        watched = types.Registration("watched", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        server.client_register_capability(types.RegistrationParams([watched]))

    @server.feature(types.SHUTDOWN)
    async def shutdown(_: None) -> None:
        await server.end()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        if any(server.documents.document(change.uri) is None for change in params.changes):
            server.documents.touch_all()


def _synchronisation(server: TilecheckServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        server.documents.open(document.uri, document.version, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        for change in params.content_changes[-1:]:
            server.documents.change(document.uri, document.version, change.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        if server.documents.close(params.text_document.uri):
            server.clear(params.text_document.uri)


def _pull(server: TilecheckServer) -> Any:
    async def diagnostic(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        analysed = await server.documents.result(params.text_document.uri)
        if analysed is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        found = server.diagnostics(analysed)
        result_id = f"{analysed.version}:{hash(str(found))}"
        if params.previous_result_id == result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id)
        items = [_typed(types.Diagnostic, d) for d in found]
        return types.RelatedFullDocumentDiagnosticReport(items, result_id=result_id)

    return diagnostic


def _requests(server: TilecheckServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        analysed = await server.documents.result(params.text_document.uri)
        found = None if analysed is None else target(analysed, _plain(params.position))
        if analysed is None or found is None:
            return None
        borrows = None
        if found.parameter and found.kernel is not None:
            document = server.documents.document(analysed.uri)
            texts = server.documents.texts(but=document)
            with contextlib.suppress(FailedError, RefusedError):
                borrows = await server.verifier.ask(
                    "borrows", analysed.path, analysed.data, texts, found.kernel.name
                )
        kinds: Sequence[str] = server.can("text_document", "hover", "content_format") or ("markdown",)
        kind = "markdown" if "markdown" in [str(getattr(k, "value", k)) for k in kinds] else "plaintext"
        contents = {"kind": kind, "value": hover_text(analysed, found, borrows)}
        range_ = analysed.positions().range(found.span)
        return types.Hover(_typed(types.MarkupContent, contents), _typed(types.Range, range_))

    kinds = [types.CodeActionKind(kind) for kind in (QUICKFIX, REFACTOR)]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(kinds))
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command] | None:
        analysed = await server.documents.result(params.text_document.uri)
        if analysed is None:
            return None
        only = params.context.only
        found = actions(
            analysed,
            _plain(params.range),
            only=None if only is None else [str(getattr(kind, "value", kind)) for kind in only],
            versioned=server.takes_versions,
            related=server.takes_related,
        )
        if server.can("text_document", "code_action", "code_action_literal_support") is None:
            return [_typed(types.Command, a["command"]) for a in found if "command" in a]
        return [_typed(types.CodeAction, action) for action in found]

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        analysed = await server.documents.result(params.text_document.uri)
        return None if analysed is None else [_typed(types.CodeLens, x) for x in lenses.lenses(analysed)]

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        analysed = await server.documents.result(params.text_document.uri)
        if analysed is None:
            return None
        return [_typed(types.InlayHint, hint) for hint in lenses.hints(analysed, _plain(params.range))]

    @server.command(EXPLAIN)
    async def explain(word: str) -> str | None:
        return await server.explain(word)

    @server.command(PROPOSE)
    async def propose(uri: str, kernel: str) -> list[str]:
        return list(await server.propose(uri, kernel))


def serve(verifier: Verifier) -> int:
    """Serve one client on stdin and stdout; the exit code that the protocol asks for."""
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # what matters is told to the client
    server = create(verifier)
    asked = False

    @server.feature(types.EXIT)
    def leave(_: None) -> None:
        nonlocal asked
        asked = bool(server.protocol._shutdown)  # noqa: SLF001 - the one place where pygls keeps it

    try:
        server.start_io()
    finally:
        verifier.stop()
    return 0 if asked else 1
