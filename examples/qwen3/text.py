"""Text to tokens and back, with the tokenizer and the chat template of the model's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from qwen3.errors import UserError

try:
    import jinja2
    import jinja2.sandbox
    import tokenizers
except ImportError as error:  # pragma: no cover
    raise UserError(f"{error.name} is not installed: pip install tokenizers jinja2 safetensors") from None

_REPLACED = "\N{REPLACEMENT CHARACTER}"  # of a character whose last bytes are still to come


class Text:
    """The tokenizer of a folder."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        if not path.exists():
            raise UserError(f"{path} does not exist")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # noqa: BLE001 - the library raises this very class
            raise UserError(f"{path} is no tokenizer: {error}") from None
        self._template = _template(folder)

    def encode(self, prompt: str, *, is_raw: bool) -> list[int]:
        """The tokens of a prompt: of a user's turn in a chat, or as it is.

        Raises:
            UserError: the prompt has no tokens.
        """
        text = prompt if is_raw or self._template is None else self._as_chat(prompt)
        try:
            tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        except (TypeError, ValueError):  # of bytes that are no text, which Python keeps as half characters
            raise UserError("the prompt is no text in UTF-8") from None
        if not tokens:
            raise UserError("the prompt is empty")
        return tokens

    def _as_chat(self, prompt: str) -> str:
        assert self._template is not None
        try:
            text: str = self._template.render(
                messages=[{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                enable_thinking=False,
            )
        except Exception as error:  # noqa: BLE001 - whatever the expressions of a template raise
            raise UserError(f"the chat template of the model fails: {error}; try --raw-prompt") from None
        return text

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text

    def pieces(self, tokens: Iterator[int]) -> Iterator[str]:
        """The text of tokens as they come. A character that several tokens make comes with the last of them."""
        waiting: list[int] = []
        for token in tokens:
            waiting.append(token)
            text = self.decode(waiting)
            if not text.endswith(_REPLACED):
                yield text
                waiting = []
        if waiting:
            yield self.decode(waiting)


def _template(folder: Path) -> Any | None:
    """The chat template of a folder; None if it has none."""
    path, source = folder / "chat_template.jinja", None
    try:
        if path.exists():
            source = path.read_text(encoding="utf-8")
        elif (path := folder / "tokenizer_config.json").exists():
            source = json.loads(path.read_text(encoding="utf-8")).get("chat_template")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if source is None:
        return None
    if not isinstance(source, str):
        raise UserError(f"{path}: `chat_template` is no text")
    # A template comes with the weights, from whoever made them: it gets at nothing but its arguments.
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    try:
        return environment.from_string(source)
    except jinja2.TemplateError as error:
        raise UserError(f"the chat template of the model cannot be read: {error}") from None
