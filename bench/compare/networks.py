"""Where ranks run: on this machine's loopback, or on hosts that are network namespaces behind one switch, each with a link of a given rate."""

import os
import tempfile

from namespaces import Namespace, NetworkError

RATES = {"mbit": 125_000, "gbit": 125_000_000}  # bytes per second


def bytes_per_second(rate):
    """Of a rate as tc writes it, such as 1gbit or 250mbit."""
    for unit, factor in RATES.items():
        number = rate[: -len(unit)]
        if rate.endswith(unit) and number.isdecimal() and int(number) > 0:
            return int(number) * factor
    raise NetworkError(f"'{rate}' is not a rate; write it as 1gbit or 250mbit")


class Loopback:
    name = "loopback"
    interface = "lo"
    rates = None

    def __init__(self, ranks):
        self.addresses = ["127.0.0.1"] * ranks

    def on(self, rank, words):
        """The words that run `words` where rank `rank` is."""
        return words

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class ShapedHosts:
    """One host per entry of `rates`, each with eth0; both directions of its link have that rate. `per_host` ranks run on each, those of a
    host one after the other."""

    interface = "eth0"
    switch_interface = "br0"

    def __init__(self, rates, per_host=1):
        self.rates = [bytes_per_second(rate) for rate in rates]
        self.rate_texts = rates
        hosts = f"{len(rates)} hosts at {rates[0]}" if len(set(rates)) == 1 else f"hosts at {', '.join(rates)}"
        self.name = hosts if per_host == 1 else f"{hosts}, {per_host} ranks on each"
        self.per_host = per_host
        self.addresses = [f"10.78.0.{host + 1}" for host in range(len(rates)) for _ in range(per_host)]
        self.namespaces = []

    def on(self, rank, words):
        return self.namespaces[1 + rank // self.per_host].inside(*words)

    def agent(self):
        """A program with the arguments of ssh that runs a command on the host of an address: how MPI starts its own processes."""
        return self.agent_path

    def at_switch(self, words):
        """The words that run `words` where all hosts can be reached."""
        return self.namespaces[0].inside(*words)

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def build(self):
        switch = self.namespace()
        switch.run("ip", "link", "set", "lo", "up")
        switch.run("ip", "link", "add", self.switch_interface, "type", "bridge")
        switch.run("ip", "link", "set", self.switch_interface, "up")
        switch.run("ip", "addr", "add", "10.78.0.254/24", "dev", self.switch_interface)
        for number, rate in enumerate(self.rate_texts):
            host = self.namespace()
            port = f"port{number}"
            switch.run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(host.keeper.pid))
            switch.run("ip", "link", "set", port, "master", self.switch_interface, "up")
            host.run("ip", "link", "set", "lo", "up")
            host.run("ip", "addr", "add", f"10.78.0.{number + 1}/24", "dev", "eth0")
            host.run("ip", "link", "set", "eth0", "up")
            for place, device in ((host, "eth0"), (switch, port)):
                place.run("tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "131072", "limit", "1048576")
        self.folder = tempfile.TemporaryDirectory(prefix="ringlet-compare-")
        self.agent_path = os.path.join(self.folder.name, "agent")
        with open(self.agent_path, "w") as file:
            cases = "\n".join(
                f"  10.78.0.{number + 1}) exec {' '.join(host.inside())} sh -c \"$*\" ;;" for number, host in enumerate(self.namespaces[1:])
            )
            # Both MPIs put options of ssh before the address.
            file.write(
                f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift; done\naddress=$1\nshift\ncase $address in\n{cases}\nesac\n'
                'echo "no host $address" >&2\nexit 1\n'
            )
        os.chmod(self.agent_path, 0o755)

    def namespace(self):
        self.namespaces.append(Namespace())
        return self.namespaces[-1]

    def __exit__(self, *_):
        for namespace in self.namespaces:
            namespace.end()
        self.namespaces = []
        if hasattr(self, "folder"):
            self.folder.cleanup()
