"""Loaded first by each Python process of a test, whose PYTHONPATH has this folder.

Hides PyTorch and spacy-transformers unless WITH_TORCH is set: spaCy imports both if it can, which takes longer than all
else. If CONNECTIONS names a file, refuses and records connections to other machines and look-ups of them, by an audit
hook, which can't be removed (PEP 578).
"""

import os
import sys
from types import SimpleNamespace

LOCAL = ("localhost", "127.", "::1", "0.0.0.0")


def refuse(event: str, arguments: tuple) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # a path is that of a socket on this machine
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host and not host.startswith(LOCAL):
        command = " ".join(sys.orig_argv)[:200]
        with open(os.environ["CONNECTIONS"], "a", encoding="utf8") as file:  # noqa: PTH123  pathlib loads slowly
            file.write(f"{event} {host}: {command!r}\n")
        raise ConnectionRefusedError(f"{event} {host}: tests stay on this machine")


def hide_torch() -> None:
    sys.modules |= {"torch": None, "spacy_transformers": None}  # type: ignore[dict-item]
    # The entry point of spacy-transformers, which spaCy loads with all factories.
    sys.modules["spacy_transformers.pipeline_component"] = SimpleNamespace(make_transformer=None)  # type: ignore


# pytest's own processes start outside of a test.
if "PYTEST_CURRENT_TEST" in os.environ:
    sys.modules["sklearn"] = None  # type: ignore[assignment]  # transformers imports it, if nightly has installed it
    if "WITH_TORCH" not in os.environ:
        hide_torch()
if "CONNECTIONS" in os.environ:
    sys.addaudithook(refuse)
