"""Sockets at which the ranks of a group meet."""

from __future__ import annotations

import os
import re
import socket
from typing import Optional

from .errors import InvalidArgument


def is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def listen_at(host: str) -> socket.socket:
    """A socket that listens at this address of this machine: beyond the loopback within RINGLET_PORTS, where that is set."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    candidates = range(1) if is_loopback(host) else _allowed_ports()
    for port in candidates:
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            # Connections that a socket there had before keep the port for a minute after they have ended.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))
            listening.listen(128)
            return listening
        except OSError:
            listening.close()
            if port == candidates[-1]:
                raise
    raise AssertionError("there is at least one port")


def _allowed_ports() -> range:
    """Those of RINGLET_PORTS; port 0, which is any, without it."""
    ports = os.environ.get("RINGLET_PORTS", "any") or "any"
    if ports == "any":
        return range(1)
    match = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", ports)
    allowed = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
    if not allowed or allowed[0] < 1 or allowed[-1] > 65535:
        raise InvalidArgument(f"RINGLET_PORTS is '{ports}'; write FIRST-LAST, a port, or any")
    return allowed


def address_told(listening: socket.socket, advertise: Optional[str] = None) -> str:
    """Where the others look for it: where it listens, or at the first address of `advertise`, or else of RINGLET_ADVERTISE, all of which
    init() checks. It is the loopback's where that is listened at, since all ranks are on this machine then."""
    host, port = listening.getsockname()[:2]
    first = (os.environ.get("RINGLET_ADVERTISE", "") if advertise is None else advertise).partition(",")[0]
    if not first or is_loopback(host):
        return address_of(listening)
    has_port = "]:" in first or first.count(":") == 1
    return first if has_port else _joined(first.strip("[]"), port)


def address_of(listening: socket.socket) -> str:
    """Where others find it, host:port or [v6]:port."""
    host, port = listening.getsockname()[:2]
    return _joined(host, port)


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
