"""Network namespaces of this machine, for measurements between hosts."""

import subprocess


class NetworkError(Exception):
    """What could not be set up, for the user."""


def checked(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise NetworkError(f"`{' '.join(words)}` failed: {done.stderr.strip()}")


class Namespace:
    """A network namespace that lives as long as a process which waits for this one to end."""

    def __init__(self):
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if self.keeper.stdout.readline() != b"\n":
            self.keeper.wait()
            raise NetworkError(
                f"a network namespace cannot be made ({self.keeper.stderr.read().decode().strip()}); this takes root, on Linux"
            )

    def inside(self, *words):
        return ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net", *words]

    def run(self, *words):
        checked(*self.inside(*words))

    def end(self):
        self.keeper.kill()
        self.keeper.wait()
        for pipe in (self.keeper.stdin, self.keeper.stdout, self.keeper.stderr):
            pipe.close()
