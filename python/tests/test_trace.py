"""A program's own spans in the trace of its ranks."""

import json
import sys
import threading

import pytest
from ranks import launch, run

import ringlet

STEPS = 3
PROGRAM = """
import os
import sys
import threading
import numpy as np
import ringlet

STEPS = 3
kept = ringlet.TraceSpan("kept")
with ringlet.TraceSpan("before init"):
    world = ringlet.init(strict=True, trace=sys.argv[1] if len(sys.argv) > 1 else None)

for number in range(STEPS):
    with ringlet.TraceSpan("step"):
        with ringlet.TraceSpan("forward"):
            np.ones(100_000).sum()
        with ringlet.TraceSpan("next batch", wait=True):
            np.ones(100_000).sum()
        world.all_sum(1.0)

try:
    with ringlet.TraceSpan("failing"):
        raise KeyError("its own")
except KeyError as error:
    assert error.args == ("its own",)

def nest(depth):
    with kept as entered:
        assert entered is kept
        if depth > 1:
            nest(depth - 1)

all_are_in = threading.Barrier(4)

def nest_on_a_thread():
    with kept:
        all_are_in.wait()
        nest(2)
        all_are_in.wait()

threads = [threading.Thread(target=nest_on_a_thread) for _ in range(3)]
with ringlet.TraceSpan("around threads"):
    for thread in threads:
        thread.start()
    with kept:
        all_are_in.wait()
        all_are_in.wait()
    for thread in threads:
        thread.join()

def generator():
    with ringlet.TraceSpan("in a generator"):
        yield

suspended = generator()
next(suspended)
closing = threading.Thread(target=suspended.close)
closing.start()
closing.join()

entered_here = ringlet.TraceSpan("entered here")
with entered_here:
    leaving = threading.Thread(target=entered_here.__exit__, args=(None, None, None))
    leaving.start()
    leaving.join()
    with ringlet.TraceSpan("behind another thread's exit"):
        np.ones(100_000).sum()

deep = ringlet.TraceSpan("deep")

def descend(levels):
    with deep:
        if levels > 1:
            descend(levels - 1)
        else:
            np.ones(100_000).sum()

descend(70)
with deep:
    pass

around = ringlet.TraceSpan("around a fork")
with around:
    child = os.fork()
    if child > 0:
        assert os.waitpid(child, 0)[1] == 0
    else:
        with around, ringlet.TraceSpan("in the child"):
            pass
if child == 0:
    os._exit(0)
world.close()
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def command(*words):
    # A free-threaded Python warns there.
    done = run("ringlet", *words, stderr=None)
    assert done.returncode == 0, done.stdout
    return done.stdout


def spans_of(file, rank):
    """The rank's own spans by name: track, begin and end in microseconds."""
    spans = {}
    for event in json.loads(file.read_text())["traceEvents"]:
        own = event["ph"] == "X" and event["pid"] == rank and (event["cat"] == "program" or event["name"] == "next batch")
        if own:
            spans.setdefault(event["name"], []).append((event["tid"], event["ts"], event["ts"] + event["dur"]))
    return spans


def lies_within(inner, outer):
    rounding = 0.0015
    return inner[0] == outer[0] and outer[1] <= inner[1] + rounding and inner[2] <= outer[2] + rounding


def check(file):
    for rank in (0, 1):
        spans = spans_of(file, rank)
        counts = {name: len(found) for name, found in spans.items()}
        assert counts == {
            "step": STEPS,
            "forward": STEPS,
            "next batch": STEPS,
            "failing": 1,
            "kept": 3 * 3 + 1,
            "around threads": 1,
            "entered here": 1,
            "behind another thread's exit": 1,
            "deep": 64 + 1,
            "around a fork": 1,
        }
        for part in ("forward", "next batch"):
            assert all(any(lies_within(one, step) for step in spans["step"]) for one in spans[part])
        assert lies_within(spans["behind another thread's exit"][0], spans["entered here"][0])
        descended = sorted(sorted(spans["deep"], key=lambda span: span[1])[:64], key=lambda span: span[2] - span[1])
        assert all(map(lies_within, descended, descended[1:]))
        by_track = {}
        for one in spans["kept"]:
            by_track.setdefault(one[0], []).append(one)
        assert sorted(map(len, by_track.values())) == [1, 3, 3, 3]
        for nested in by_track.values():
            innermost_first = sorted(nested, key=lambda span: span[2] - span[1])
            assert all(map(lies_within, innermost_first, innermost_first[1:]))
    sums = json.loads(command("trace", "summary", file, "--within", "step", "--json"))
    assert sums["dropped"] == 0 and len(sums["ranks"]) == 2
    for rank in sums["ranks"]:
        assert {name: span["count"] for name, span in rank["spans"].items()} == {"step": STEPS, "forward": STEPS}
        assert rank["computed_seconds"] > 0 and rank["waited_seconds"] > 0 and rank["collectives"]["seconds"] > 0
        waited = sum(end - begin for _, begin, end in spans_of(file, rank["process"])["next batch"])
        assert rank["waited_seconds"] > waited * 1e-6


def test_spans_are_in_the_trace_of_a_launch(tmp_path, program):
    file = tmp_path / "trace.json"
    command("launch", "-n", 2, "--trace", file, "--", sys.executable, program)
    check(file)


def test_a_program_asks_for_its_trace_itself(tmp_path, program):
    file = tmp_path / "trace.json"
    done = launch(2, sys.executable, program, file)
    assert done.returncode == 0, done.stdout
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["trace.0.json", "trace.1.json"]
    command("trace", "merge", file)
    check(file)


ALONE = """
import pathlib
import sys
import ringlet

with ringlet.init(trace=pathlib.Path(sys.argv[1])):
    for name in ("Straße " + 40 * "x", 38 * "x" + "ß", 37 * "x" + "ß"):
        with ringlet.TraceSpan(name):
            pass
"""


def test_a_process_alone_writes_the_file_itself(tmp_path):
    file = tmp_path / "trace.json"
    done = launch(1, sys.executable, "-c", ALONE, file)
    assert done.returncode == 0, done.stdout
    names = [event["name"] for event in json.loads(file.read_text()) if event.get("cat") == "program"]
    assert names == ["Straße " + 31 * "x", 38 * "x", 37 * "x" + "ß"]


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(ringlet.InvalidArgument, match=r"none/trace\.0\.json' \(the option trace\) cannot be written"):
        ringlet.init(trace=tmp_path / "none" / "trace.json")


def test_spans_without_a_trace():
    span = ringlet.TraceSpan("step")
    with span as entered, span, ringlet.TraceSpan(name="waiting", wait=True):
        assert entered is span
    with pytest.raises(ZeroDivisionError), span:
        1 / 0
    thread = threading.Thread(target=span.__exit__, args=(None, None, None))
    thread.start()
    thread.join()


def test_mistakes():
    for arguments in ((), (3,), ("step", True), (None,), ("\ud800",)):
        with pytest.raises(TypeError):
            ringlet.TraceSpan(*arguments)
    with pytest.raises(TypeError):
        ringlet.init(trace=3)
