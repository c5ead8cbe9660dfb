"""Sockets at which ranks meet that Python opens, for torch and Ray."""

import socket

import pytest

import ringlet
from ringlet import listening


@pytest.fixture(autouse=True)
def as_if_others_could_reach_it(monkeypatch):
    # RINGLET_PORTS counts for such addresses alone.
    monkeypatch.setattr(listening, "is_loopback", lambda address: False)


def test_ports_that_a_firewall_lets_in(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first = min(taken.getsockname()[1], 65500)
        monkeypatch.setenv("RINGLET_PORTS", f"{first}-{first + 30}")
        with listening.listen_at("127.0.0.1") as found:
            assert first <= found.getsockname()[1] <= first + 30
            assert found.getsockname()[1] != taken.getsockname()[1]
        monkeypatch.setenv("RINGLET_PORTS", str(taken.getsockname()[1]))
        with pytest.raises(OSError):
            listening.listen_at("127.0.0.1")


def test_a_port_serves_again_at_once(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as before:
        port = before.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = before.accept()
            accepted.close()  # first, so that its end has the port for a while
            client.recv(1)
    monkeypatch.setenv("RINGLET_PORTS", str(port))
    with listening.listen_at("127.0.0.1") as found:
        assert found.getsockname()[1] == port


@pytest.mark.parametrize("ports", ["abc", "7-", "9-8", "0", "1-70000", "-5"])
def test_what_are_no_ports(monkeypatch, ports):
    monkeypatch.setenv("RINGLET_PORTS", ports)
    with pytest.raises(ringlet.InvalidArgument, match=f"RINGLET_PORTS is '{ports}'; write FIRST-LAST, a port, or any"):
        listening.listen_at("127.0.0.1")


@pytest.mark.parametrize(
    "advertised, told",
    [
        ("", "127.0.0.1:PORT"),
        ("203.0.113.7,10.0.0.1:5", "203.0.113.7:PORT"),
        ("alpha:5000", "alpha:5000"),
        ("2001:db8::7", "[2001:db8::7]:PORT"),
        ("[2001:db8::7]", "[2001:db8::7]:PORT"),
        ("[2001:db8::7]:5000,alpha", "[2001:db8::7]:5000"),
    ],
)
def test_others_are_told_what_is_advertised(monkeypatch, advertised, told):
    with listening.listen_at("127.0.0.1") as found:
        told = told.replace("PORT", str(found.getsockname()[1]))
        assert listening.address_told(found, advertised) == told
        monkeypatch.setenv("RINGLET_ADVERTISE", advertised)
        assert listening.address_told(found) == told
        # Where the loopback is listened at, nobody elsewhere is told.
        monkeypatch.setattr(listening, "is_loopback", lambda address: True)
        assert listening.address_told(found) == listening.address_of(found)
