"""URIs of documents and paths of files."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


def path_of(uri: str, root: str) -> str:
    """The path of a document. One that is no file gets a path in the folder `root`: its imports start there."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        host = f"//{parts.netloc}" if parts.netloc and parts.netloc != "localhost" else ""
        return Path(url2pathname(host + parts.path)).as_posix()
    name = _NOT_IN_NAMES.sub("-", unquote(parts.path)).strip("-.") or "document"
    return (Path(root) / name).with_suffix(".py").as_posix()


def uri_of(path: str) -> str:
    """The URI of a file."""
    return Path(path).absolute().as_uri()
