"""Hosts on one network for tests: network namespaces, which vanish with the processes that keep them."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def why_not():
    """Why there can be no hosts here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces are made by root alone"
    for program in ("ip", "unshare", "nsenter"):
        if shutil.which(program, path=PATH) is None:
            return f"{program} is missing"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, env={"PATH": PATH})
    return None if tried.returncode == 0 else f"unshare: {tried.stderr.strip()}"


class Host:
    """A network namespace with a loopback and eth0, and a home of its own for what programs keep of the machine."""

    def __init__(self, number):
        self.name = f"host{number}"
        self.address = f"10.79.0.{number}"
        self._home = tempfile.TemporaryDirectory()
        # A process that does nothing else keeps the namespace, and ends with this one, whose end of the pipe then closes.
        self._keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo here; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": PATH},
        )
        assert self._keeper.stdout.readline() == "here\n"
        self.call("ip", "link", "set", "lo", "up")

    @property
    def pid(self):
        return self._keeper.pid

    def start(self, *command, environment=None, **options):
        """Starts a command on this host."""
        settings = {**os.environ, "PATH": PATH, "HOME": self._home.name, "XDG_CONFIG_HOME": self._home.name, **(environment or {})}
        return subprocess.Popen(
            ["nsenter", f"--net=/proc/{self.pid}/ns/net", *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**settings, "PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"},
            **options,
        )

    def call(self, *command, **options):
        """Runs a command to its end, and returns what it printed."""
        process = self.start(*command, **options)
        said = process.communicate(timeout=240)[0]
        assert process.returncode == 0, (command, said)
        return said

    def leave(self):
        self._keeper.stdin.close()
        self._keeper.wait()
        self._home.cleanup()


class TwoHosts:
    """A cable between two hosts."""

    def __enter__(self):
        self.hosts = [Host(1), Host(2)]
        one, other = self.hosts
        one.call("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", other.pid)
        for host in self.hosts:
            host.call("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
            host.call("ip", "link", "set", "eth0", "up")
        return self.hosts

    def __exit__(self, *_):
        for host in self.hosts:
            host.leave()


def program_of_package(name):
    """A program that the installation has put beside Python's."""
    import sys

    return Path(sys.executable).with_name(name)
