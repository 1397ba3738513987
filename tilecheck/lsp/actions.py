"""Code actions: what a user can do about a finding without leaving the place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilecheck.hygiene import NEVER_SUPPRESSED, UNUSED_SUPPRESSION
from tilecheck.lsp.diagnostics import Shown, shown
from tilecheck.lsp.edits import Edit, ignored, required, without_suppression
from tilecheck.lsp.outline import Outline, outline
from tilecheck.model import Reason

if TYPE_CHECKING:
    from tilecheck.lsp.analysed import Analysed
    from tilecheck.lsp.positions import Json
    from tilecheck.model import KernelReport

EXPLAIN = "tilecheck.explain"  # a command of the server, with the code of a rule or the name of a topic
PROPOSE = "tilecheck.propose"  # another, with a document and the name of a kernel in it
QUICKFIX, REFACTOR = "quickfix", "refactor"
# A contract that a report asks for, as it can be pasted.
_REQUIRES = re.compile(r"# tilecheck: requires (?P<contract>[^`]+?)(?= -- |`| and # tilecheck:)")


def actions(
    analysed: Analysed,
    range_: Json,
    *,
    only: Sequence[str] | None = None,
    versioned: bool = True,
    related: bool = True,
) -> list[Json]:
    """The actions for the lines of a range. `only` are the kinds that are asked for; `versioned` says that the
    client takes edits that name the version they were made for."""
    read = outline(analysed.positions().source)
    found: list[Json] = []
    for item in shown(analysed, related=related):
        if _meets(item.diagnostic["range"], range_):
            found += _for_finding(analysed, read, item, versioned=versioned)
    for kernel in analysed.kernels if read is not None else ():
        if read is not None and _meets(analysed.positions().range(kernel.site.span), range_):
            found += _for_kernel(analysed, read, kernel, versioned=versioned)
    kinds = [action for action in found if only is None or any(_is_kind(action["kind"], k) for k in only)]
    return list({str(action): action for action in kinds}.values())


def _meets(first: Json, second: Json) -> bool:
    """Whether two ranges share a line."""
    return bool(
        first["start"]["line"] <= second["end"]["line"] and second["start"]["line"] <= first["end"]["line"]
    )


def _is_kind(kind: str, asked: str) -> bool:
    return not asked or kind == asked or kind.startswith(f"{asked}.")


def _for_finding(analysed: Analysed, read: Outline | None, item: Shown, *, versioned: bool) -> Iterator[Json]:
    code = item.diagnostic.get("code")
    if code is None:
        return
    finding = item.finding
    kernel = next((k for k in analysed.kernels if k.name == item.kernel), None)
    if read is not None and finding is not None and finding.site.file == analysed.path:
        contracts = contracts_in(finding.help)
        edit = None if kernel is None else required(read, kernel, contracts)
        if edit is not None:
            title = f"Require {' and '.join(f'`{c}`' for c in contracts)} of launches"
            yield _edit(analysed, title, edit, item, versioned=versioned)
        if contracts and kernel is not None and kernel.reason == Reason.NEEDS_CONTRACT.value:
            title = f"Find contracts that decide `{kernel.name}`"
            yield _command(title, PROPOSE, [analysed.uri, kernel.name], item)
        if code == UNUSED_SUPPRESSION:
            edit = without_suppression(read, finding.site.span)
            if edit is not None:
                title = "Remove the suppression that silences nothing"
                yield _edit(analysed, title, edit, item, versioned=versioned, preferred=True)
        if code not in NEVER_SUPPRESSED:
            edit = ignored(read, finding.site.span.start, code)
            if edit is not None:
                yield _edit(analysed, f"Suppress {code} here, with a reason", edit, item, versioned=versioned)
    yield _command(f"Explain {code}", EXPLAIN, [code], item)


def _command(title: str, command: str, arguments: list[Any], item: Shown) -> Json:
    return {
        "title": title,
        "kind": QUICKFIX,
        "diagnostics": [item.diagnostic],
        "command": {"title": title, "command": command, "arguments": arguments},
    }


def contracts_in(text: str | None) -> tuple[str, ...]:
    """The contracts in a help text, those with a gap for the author to fill left out."""
    found = [match["contract"].strip() for match in _REQUIRES.finditer(text or "")]
    return tuple(contract for contract in dict.fromkeys(found) if "..." not in contract)


def _for_kernel(analysed: Analysed, read: Outline, kernel: KernelReport, *, versioned: bool) -> Iterator[Json]:
    """A condition that is only found is not written anywhere: stating it makes it the author's."""
    stated = set(kernel.requires)
    missing = tuple(condition for condition in kernel.conditions if condition not in stated)
    edit = required(read, kernel, missing)
    if edit is not None:
        many = f"the {len(missing)} launch conditions" if len(missing) > 1 else f"`{missing[0]}`"
        title = f"State {many} of `{kernel.name}` as `requires`"
        yield _edit(analysed, title, edit, None, versioned=versioned)


def workspace_edit(analysed: Analysed, edit: Edit, *, versioned: bool) -> Json:
    """An edit of a document, as the protocol has it."""
    change = {"range": analysed.positions().range(edit.span), "newText": edit.text}
    if not versioned:
        return {"changes": {analysed.uri: [change]}}
    document = {"uri": analysed.uri, "version": analysed.version}
    return {"documentChanges": [{"textDocument": document, "edits": [change]}]}


def _edit(
    analysed: Analysed, title: str, edit: Edit, item: Shown | None, *, versioned: bool, preferred: bool = False
) -> Json:
    changes = workspace_edit(analysed, edit, versioned=versioned)
    action: Json = {"title": title, "kind": REFACTOR if item is None else QUICKFIX, "edit": changes}
    if item is not None:
        action["diagnostics"] = [item.diagnostic]
    if preferred:
        action["isPreferred"] = True
    return action
