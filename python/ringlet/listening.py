"""Sockets at which the ranks of a group meet."""

from __future__ import annotations

import os
import socket

from .errors import InvalidArgument


def is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def listen_at(host: str) -> socket.socket:
    """A socket that listens at this address of this machine: beyond the loopback within RINGLET_PORTS, where that is set."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = os.environ.get("RINGLET_PORTS", "") if not is_loopback(host) else ""
    first, _, last = ports.partition("-")
    candidates = range(int(first), int(last or first) + 1) if ports and ports != "any" else range(1)
    for port in candidates:
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.bind((host, port))
            listening.listen(128)
            return listening
        except OSError:
            listening.close()
            if port == candidates[-1]:
                raise
    raise InvalidArgument(f"RINGLET_PORTS is '{ports}', which has no port")


def address_of(listening: socket.socket) -> str:
    """Where others find it, host:port or [v6]:port."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
