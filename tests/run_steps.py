"""Builds the steps of scripts/test one after the other, runs each one's tests while the next is built, and says where the time went."""

import argparse
import os
import platform
import queue
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINUX = platform.system() == "Linux"
# Builds give way to the tests beside them, since some tests wait for heartbeats.
GIVE_WAY = ["nice", "-n", "5"]
# Of a build's progress lines, such as "[12/96] ...", every tenth is shown.
PROGRESS = re.compile(r"^\[(\d+)/\d+\]")
SHOWN_OF_TESTS = re.compile(r"^\s*\d+/\d+ Test +#|tests passed|^No tests were found")


def configure(step, *options):
    return ["cmake", "--preset", step, "-DRINGLET_TESTS=ON", *options]


def build(step, *options):
    return [*GIVE_WAY, "cmake", "--build", "--preset", step, *options]


@dataclass
class Step:
    """The commands that build a step, and the tests that follow: ctest's in build/NAME, a command of their own, or none."""

    name: str
    commands: list
    tests: object = "ctest"  # "ctest", a command, or None
    ctest_options: list = field(default_factory=list)
    beside: str = ""  # a label: its tests, which mostly wait themselves, run beside the others
    alone: str = ""  # a label: its tests wait until nothing is built any more
    later: list = field(default_factory=list)  # built after the next step is, before the tests


def steps_by_name(python_packages):
    sanitize = [] if LINUX else ["-DRINGLET_FUZZERS=OFF", "-DCMAKE_CXX_COMPILER=c++", "-DCMAKE_C_COMPILER=cc"]
    modules = ["--target", "ringlet", "--target", "train_text"]
    # As scripts/wheel has it, which else would link programs anew while tests run them.
    linked = ["-DRINGLET_STATIC_BOTAN=ON"] if LINUX else []
    packages = [word for package in python_packages for word in ("--with", package)]
    return {
        step.name: step
        for step in [
            # The optimised build embeds the page, so that comes first. The tests in WebAssembly meet native ranks, so they come after that
            # build.
            Step("wasm", [configure("wasm"), build("wasm", *modules), ["node", "wasm/scripts/build.mjs"]], later=[build("wasm")]),
            # Beside a compiler, a browser is slower than its tests have patience for.
            Step("release", [configure("release", *linked), build("release")], beside="^waiting$", alone="^browser$"),
            # It uses the optimised build's objects.
            Step(
                "python",
                [[*GIVE_WAY, "scripts/wheel", "--no-test", *packages]],
                tests=["scripts/wheel", "--test", *packages],
            ),
            Step("asan-ubsan", [configure("asan-ubsan", *sanitize), build("asan-ubsan")]),
            Step("tsan", [configure("tsan"), build("tsan")]),
            Step("mac", [[*GIVE_WAY, "scripts/cross-mac"]], tests=None),
            Step("mac-intel", [[*GIVE_WAY, "scripts/cross-mac", "--arch", "x86_64"]], tests=None),
            Step("dev", [configure("dev"), build("dev")], beside="^waiting$"),
            Step("portable", [configure("portable"), build("portable")], beside="^waiting$", ctest_options=["-L", "^(net|process)$"]),
            Step("arm64", [[*GIVE_WAY, "scripts/cross-arm64", "--build"]], tests=["scripts/cross-arm64", "--test"]),
            Step("soak", [], tests=["scripts/soak"]),
        ]
    }


class Run:
    """The results of what has been run so far. The two threads share them under the lock."""

    def __init__(self, labels, left_out, ctest_options):
        self.labels = labels
        self.left_out = left_out  # labels
        self.ctest_options = ctest_options
        self.lock = threading.Lock()
        self.rows = []  # (text, seconds, seconds of work, exit code)
        self.failures = []
        self.passed = self.failed = self.skipped = 0
        self.remarks = []  # what tests that are not ctest's say of themselves

    def say(self, name, text):
        with self.lock:
            print(f"[{name}] {text}", flush=True)

    def command(self, name, what, words, log, shown):
        """Runs a command, shows those of its lines that `shown` picks, all of them if it fails, and returns its output. `what` is its row in
        the table."""
        log.parent.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        lines = []
        try:
            process = subprocess.Popen(
                words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            )
        except OSError as error:
            self.say(name, f"cannot run {words[0]}: {error}")
            with self.lock:
                self.failures.append(what)
            return False, ""
        with open(log, "w", encoding="utf-8") as file:
            for line in process.stdout:
                file.write(line)
                lines.append(line)
                if shown(line):
                    self.say(name, line.rstrip())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        with self.lock:
            self.rows.append((what, time.monotonic() - begin, used.ru_utime + used.ru_stime, process.returncode))
        if process.returncode != 0:
            with self.lock:
                self.failures.append(what)
                print("".join(lines), flush=True)
                print(f"[{name}] exit code {process.returncode}: {' '.join(words)}", flush=True)
        return process.returncode == 0, "".join(lines)

    def build(self, step, commands):
        def shown(line):
            progress = PROGRESS.match(line)
            return (
                int(progress[1]) % 10 == 0 if progress else "warning" in line or line.startswith(("cross-mac:", "mac-", "macOS ", "arm64:"))
            )

        return all(
            self.command(
                step.name,
                f"{'configure' if '--preset' in words and '--build' not in words else 'build'} {step.name}",
                words,
                ROOT / "build" / f"{step.name}.build.log",
                shown,
            )[0]
            for words in commands
        )

    def test(self, step):
        if step.tests is None:
            return
        if step.tests != "ctest":
            _, output = self.command(
                step.name, f"test {step.name}", step.tests, ROOT / "build" / f"{step.name}.test.log", lambda line: True
            )
            self.count_pytest(output)
            return
        elsewhere = [label for label in (step.beside, step.alone) if label]
        runs = [{"part": "", "without": elsewhere}]
        if step.beside:
            # Two runs of ctest in one folder would write the same files.
            runs.append({"part": "waiting", "of": [step.beside], "folder": "tests"})
        threads = [threading.Thread(target=self.ctest, args=(step,), kwargs=run) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_alone(self, step):
        self.ctest(step, "alone", of=[step.alone])

    def ctest(self, step, part, of=(), without=(), folder=""):
        """Runs a step's tests that have all labels of `of` and none of `without`. `part` is what the log and the table call them."""
        # With several -LE ctest leaves out only what has the labels of all.
        without = [*without, *self.left_out]
        words = [
            "ctest",
            "--test-dir",
            str(Path("build", step.name, folder)),
            "--output-on-failure",
            "-j",
            str(os.cpu_count() or 2),
            *step.ctest_options,
            *(word for label in [*self.labels, *of] for word in ("-L", label)),
            *(("-LE", "|".join(without)) if without else ()),
            *self.ctest_options,
        ]
        _, output = self.command(
            step.name,
            f"test {step.name}" + (f", {part}" if part else ""),
            words,
            ROOT / "build" / f"{step.name}.{part + '.' if part else ''}test.log",
            SHOWN_OF_TESTS.search,
        )
        counts = re.search(r"tests passed, (\d+) tests failed out of (\d+)", output)
        if counts is None:
            return
        failed, total = int(counts[1]), int(counts[2])
        skipped = len(re.findall(r"^\s*\d+/\d+ .*\*\*\*(?:Skipped|Not Run)", output, re.MULTILINE))
        with self.lock:
            self.failed += failed
            self.skipped += skipped
            self.passed += total - failed - skipped

    def count_pytest(self, output):
        """Adds what pytest's last lines count, and keeps the lines that say what was there to be tested."""
        with self.lock:
            for counts in re.findall(r"^(?:\d+ \w+,? ?)+ in [\d.]+s", output, re.MULTILINE):
                for number, outcome in re.findall(r"(\d+) (passed|failed|errors?|skipped)", counts):
                    name = "failed" if outcome.startswith("error") else outcome
                    setattr(self, name, getattr(self, name) + int(number))
            self.remarks += re.findall(r"^wheel: (ringlet .* with Python .*)$", output, re.MULTILINE)

    def report(self, began):
        print(f"\n{'':24}seconds  of work")
        for text, seconds, work, code in self.rows:
            print(f"{text:24}{seconds:7.0f}{work:9.0f}{'' if code == 0 else '  failed'}")
        print(f"{'in all':24}{time.time() - began:7.0f}{sum(row[2] for row in self.rows):9.0f}\n")
        for remark in self.remarks:
            print(f"test: {remark}")
        for failure in self.failures:
            print(f"test: failed: {failure}")
        # A build that failed counts, too, so that a run without its tests does not look like one that passed.
        failed = self.failed + sum(not failure.startswith("test ") for failure in self.failures)
        print(f"{self.passed} passed, {failed} failed, {self.skipped} skipped")


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--began", type=float, default=time.time(), help="when setting up began, in seconds since 1970")
    parser.add_argument("--with", dest="python_packages", action="append", default=[], help="a package that the step python is tested with")
    parser.add_argument("-L", "--label-regex", dest="labels", action="append", default=[], help="as ctest's")
    parser.add_argument("-LE", "--label-exclude", dest="left_out", action="append", default=[], help="as ctest's; each counts for itself")
    parser.add_argument("steps", help="names, by commas")
    arguments, ctest_options = parser.parse_known_args()
    known = steps_by_name(arguments.python_packages)
    unknown = [name for name in arguments.steps.split(",") if name not in known]
    if unknown:
        print(f"test: '{unknown[0]}' is no step; the steps are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in arguments.steps.split(",")]

    run = Run(arguments.labels, arguments.left_out, ctest_options)
    run.rows.append(("set up", time.time() - arguments.began, 0, 0))
    built = queue.Queue()

    def test_what_is_built():
        alone = []
        while (step := built.get()) is not None:
            run.test(step)
            if step.alone:
                alone.append(step)
        for step in alone:
            run.test_alone(step)

    tester = threading.Thread(target=test_what_is_built)
    tester.start()
    waiting = []  # built, but waiting for the next step
    try:
        for number, step in enumerate(chosen):
            if not run.build(step, step.commands):
                break
            if step.later:
                waiting.append(step)
                if number + 1 < len(chosen):
                    continue
            else:
                built.put(step)
            for early in waiting:
                if run.build(early, early.later):
                    built.put(early)
            waiting = []
    finally:
        built.put(None)
        tester.join()
    run.report(arguments.began)
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
