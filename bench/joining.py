#!/usr/bin/env python3
"""Measures where the time goes from nothing to the first all-reduce. The hosts are network namespaces of this machine, each with its own `ringlet
up`; one `ringlet run` starts the ranks. Needs Linux, root, iproute2 and util-linux.

  bench/joining.py --ringlet build/release/bin/ringlet --program build/release/bin/first_sum --hosts 4
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from namespaces import Namespace, checked

INSIDE = "RINGLET_JOINING_INSIDE"


class Host(Namespace):
    """One with the interface eth0."""

    def __init__(self, number):
        super().__init__()
        self.name = f"host{number}"
        self.config = tempfile.TemporaryDirectory()
        checked("ip", "link", "add", f"h{number}", "type", "veth", "peer", "name", "eth0", "netns", str(self.keeper.pid))
        checked("ip", "link", "set", f"h{number}", "master", "br0", "up")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "addr", "add", f"10.79.0.{number}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")

    def start(self, arguments, environment, **pipes):
        return subprocess.Popen(self.inside(*arguments), env=dict(environment, XDG_CONFIG_HOME=self.config.name), text=True, **pipes)


def read_until(stream, *wanted, times):
    """Reads lines until each text in `wanted` has come `times` times; returns when each was complete, and everything that was read."""
    left = dict.fromkeys(wanted, times)
    when = {}
    seen = ""
    # Lines of different ranks come in any order.
    while len(when) < len(wanted):
        line = stream.readline()
        seen += line
        if not line:
            raise SystemExit(f"joining: a process ended before its time; it said: {seen}")
        for text in wanted:
            left[text] -= text in line
            if left[text] <= 0:
                when.setdefault(text, time.monotonic())
    return when, seen


def measure(options):
    checked("ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    checked("ip", "link", "set", "br0", "up")
    hosts = [Host(number) for number in range(1, options.hosts + 1)]
    processes = []
    steps = []
    started = time.monotonic()

    def mark(step, at=None):
        steps.append((step, (time.monotonic() if at is None else at) - started))

    try:
        token = subprocess.run([options.ringlet, "token"], check=True, capture_output=True, text=True).stdout.strip()
        mark("a token is made")
        environment = dict(os.environ, RINGLET_TOKEN=token)
        with tempfile.TemporaryDirectory() as directory:
            for host in hosts:
                up = [options.ringlet, "up", "--group", "joining", "--name", host.name, "--allow", options.program]
                up += ["--allow-file", directory + "/allowed"]
                processes.append(host.start(up, environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
            for process in processes:
                read_until(process.stdout, "appeared", times=options.hosts - 1)
            mark("all machines are up and have found each other")
            run_started = time.monotonic()
            run = [options.ringlet, "run", "--group", "joining", "--at-least", str(options.hosts), "--json", "--", options.program]
            run = hosts[0].start(run, environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            processes.append(run)
            when, seen = read_until(run.stderr, "met", "sum ", times=options.hosts)
            end = json.loads(run.stdout.read())
            right = f"sum {options.hosts * (options.hosts + 1) // 2}\n"
            if run.wait() != 0 or seen.count(right) != options.hosts:
                raise SystemExit(f"joining: a sum is wrong, or a rank failed: {seen}{end}")
            phases = end["milliseconds"]
            mark("`ringlet run` has found the machines", run_started + phases["found"] / 1000)
            mark("all have agreed to run the program", run_started + phases["connected"] / 1000)
            mark("all ranks are started", run_started + phases["started"] / 1000)
            mark("the ranks have met", when["met"])
            mark("the first all-reduce is done, its result right", when["sum "])
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait()
        for host in hosts:
            host.end()
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringlet", required=True, type=os.path.realpath)
    parser.add_argument("--program", required=True, type=os.path.realpath)
    parser.add_argument("--hosts", type=int, default=4, help="from 2 to 250")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        environment = dict(os.environ, PATH=path, **{INSIDE: "1"})
        probe = ["unshare", "--net", "sh", "-c", "ip link add br-probe type bridge && command -v nsenter"]
        if subprocess.run(probe, env=environment, stdout=subprocess.DEVNULL).returncode != 0:
            print("skipped: no network namespaces on this system; are this root's rights, and iproute2 and nsenter here?")
            return 0
        return subprocess.run(["unshare", "--net", sys.executable, *sys.argv], env=environment).returncode
    steps = measure(options)
    if options.json:
        print(json.dumps({"hosts": options.hosts, "seconds": {step: round(at, 3) for step, at in steps}}))
        return 0
    print(f"{options.hosts} hosts on one machine, from nothing to the first all-reduce")
    print(f"{'step':52} {'took, s':>8} {'since the start':>16}")
    before = 0.0
    for step, at in steps:
        print(f"{step:52} {at - before:8.3f} {at:16.3f}")
        before = at
    return 0


if __name__ == "__main__":
    sys.exit(main())
