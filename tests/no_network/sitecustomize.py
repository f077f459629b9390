"""On PYTHONPATH, this has Python refuse, and write down, every connection to another machine, and every look-up of one.

It is loaded by each Python process that starts, and its hook can't be taken off (PEP 578).
"""

import os
import sys

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


sys.addaudithook(refuse)
