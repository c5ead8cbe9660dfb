"""The libraries that are compared: where each comes from, and how its ranks are started on a network."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ONE_RUN = 600  # seconds after which a library's ranks are ended


class Missing(Exception):
    """Why a library cannot be measured here."""


def compile_program(name, source, words, build):
    program = build / name
    newest = max((HERE / source).stat().st_mtime, (HERE / "measure.hpp").stat().st_mtime)
    if program.exists() and program.stat().st_mtime > newest:
        return program
    build.mkdir(parents=True, exist_ok=True)
    made = subprocess.run([*words[:1], "-O3", "-std=c++20", "-o", program, HERE / source, *words[1:]], capture_output=True, text=True)
    if made.returncode != 0:
        raise Missing(f"its program does not compile: {made.stderr.strip().splitlines()[0]}")
    return program


class Processes:
    """Those of one run. Whatever happens, none of them outlives it."""

    def __init__(self):
        self.processes = []

    def start(self, words, environment):
        self.processes.append(
            subprocess.Popen(
                [str(word) for word in words],
                env=dict(os.environ, **environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if not self.processes else subprocess.DEVNULL,
                stderr=subprocess.PIPE if not self.processes else subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        )

    def output(self):
        """What the first one printed. Raises Missing if one of them failed."""
        try:
            printed, complaints = self.processes[0].communicate(timeout=ONE_RUN)
            deadline = time.monotonic() + 20
            codes = [process.wait(max(deadline - time.monotonic(), 0.1)) for process in self.processes]
        except subprocess.TimeoutExpired:
            raise Missing(f"it did not end within {ONE_RUN} s") from None
        finally:
            self.end()
        if any(codes):
            last = complaints.strip().splitlines()[-1:] or ["nothing"]
            raise Missing(f"its ranks ended with {codes}; the last it said: {last[0]}")
        return printed

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Library:
    """A column of the tables. `run` starts ranks and returns what rank 0 printed."""

    key = ""
    title = ""
    shaped = True  # whether it can be measured beyond the loopback
    spins = False  # whether its ranks keep a core busy while they wait, so that more ranks than cores measure the scheduler

    def prepare(self, options):
        """Compiles what is needed. Raises Missing with the reason where the library is not here."""

    def run(self, network, arguments):
        raise NotImplementedError

    def start_all(self, network, words, environment_of, processes=None):
        processes = processes or Processes()
        for rank in range(len(network.addresses)):
            processes.start(network.on(rank, [str(word) for word in words]), environment_of(rank))
        return processes.output()


class Ringlet(Library):
    key = "ringlet"
    title = "Ringlet"
    environment = {}

    def prepare(self, options):
        self.program = pathlib.Path(options.build) / "bin" / "measure_ringlet"
        if not self.program.exists():
            raise Missing(f"{self.program} is not built; scripts/compare builds it")

    def run(self, network, arguments):
        size = len(network.addresses)
        # The port is of the dynamic range's end, and another one in each run, so that a closing one is not in the way.
        port = 61_000 + int(time.monotonic() * 10) % 4_000
        common = {
            "RINGLET_WORLD_SIZE": str(size),
            "RINGLET_COORDINATOR": f"{network.addresses[0]}:{port}",
            "RINGLET_TOKEN": "a comparison on this machine alone",
            "RINGLET_ENCRYPT": "off",
            **self.environment,
        }
        return self.start_all(network, [self.program, *arguments], lambda rank: {"RINGLET_RANK": str(rank), **common})


class RingletTcp(Ringlet):
    key = "ringlet-tcp"
    title = "Ringlet over TCP only"
    shaped = False
    environment = {"RINGLET_PEER_MEMORY": "off"}


class OpenMpi(Library):
    key = "openmpi-tcp"
    title = "Open MPI over TCP"
    transports = "self,tcp"

    def prepare(self, options):
        for word in ("mpirun.openmpi", "mpicxx.openmpi"):
            if not shutil.which(word):
                raise Missing(f"{word} is not here")
        self.program = compile_program("measure_openmpi", "measure_mpi.cpp", ["mpicxx.openmpi"], options.programs)

    def run(self, network, arguments):
        words = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "orte_base_help_aggregate", "1", "-np"]
        words += [str(len(network.addresses)), "--mca", "pml", "ob1", "--mca", "btl", self.transports]
        if network.rates:
            hosts = ",".join(f"{address}:{network.per_host}" for address in dict.fromkeys(network.addresses))
            words += ["--mca", "plm_rsh_agent", network.agent(), "--mca", "btl_tcp_if_include", network.interface]
            words += ["--mca", "oob_tcp_if_include", "10.78.0.0/24", "-H", hosts]
            # It cannot know that these hosts share their cores.
            words += ["--mca", "mpi_yield_when_idle", "1"]
            words = network.at_switch([*words, str(self.program), *arguments])
        else:
            words += ["--mca", "btl_tcp_if_include", "lo", str(self.program), *arguments]
        processes = Processes()
        processes.start(words, {})
        return processes.output()


class OpenMpiMemory(OpenMpi):
    key = "openmpi-memory"
    title = "Open MPI, shared memory"
    shaped = False
    transports = "self,vader"


class Mpich(Library):
    key = "mpich"
    title = "MPICH"
    spins = True

    def prepare(self, options):
        for word in ("mpiexec.mpich", "mpicxx.mpich"):
            if not shutil.which(word):
                raise Missing(f"{word} is not here")
        self.program = compile_program("measure_mpich", "measure_mpi.cpp", ["mpicxx.mpich"], options.programs)

    def run(self, network, arguments):
        words, environment = ["mpiexec.mpich", "-n", str(len(network.addresses))], {}
        if network.rates:
            words += ["-launcher", "ssh", "-launcher-exec", network.agent(), "-iface", network.switch_interface]
            words += ["-hosts", ",".join(f"{address}:{network.per_host}" for address in dict.fromkeys(network.addresses))]
            # These hosts share a kernel, and so memory, past the network.
            environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": network.interface}
        words += [str(self.program), *arguments]
        processes = Processes()
        processes.start(network.at_switch(words) if network.rates else words, environment)
        return processes.output()


class Gloo(Library):
    key = "gloo"
    title = "Gloo"

    def prepare(self, options):
        if not pathlib.Path("/usr/include/gloo").is_dir():
            raise Missing("its headers are not here (libgloo-dev)")
        self.program = compile_program("measure_gloo", "measure_gloo.cpp", [options.compiler, "-lgloo", "-pthread"], options.programs)

    def run(self, network, arguments):
        with tempfile.TemporaryDirectory(prefix="ringlet-compare-") as store:
            common = {"WORLD_SIZE": str(len(network.addresses)), "COMPARE_STORE": store}
            return self.start_all(
                network,
                [self.program, *arguments],
                lambda rank: {"RANK": str(rank), "COMPARE_ADDRESS": network.addresses[rank], **common},
            )


def interpreter_with(module, options):
    """The first of the interpreters that has a Python module."""
    for interpreter in options.python:
        if subprocess.run([interpreter, "-c", f"import numpy, {module}"], capture_output=True).returncode == 0:
            return interpreter
    raise Missing(f"no interpreter with numpy and {module} among {', '.join(map(str, options.python))}; name one by --python")


class TorchGloo(Library):
    key = "torch"
    title = "PyTorch, Gloo"

    def prepare(self, options):
        self.interpreter = interpreter_with("torch", options)

    def run(self, network, arguments):
        port = 57_000 + int(time.monotonic() * 10) % 4_000
        common = {
            "WORLD_SIZE": str(len(network.addresses)),
            "MASTER_ADDR": network.addresses[0],
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": network.interface,
            "OMP_NUM_THREADS": "1",
        }
        words = [self.interpreter, HERE / "measure_torch.py", *arguments]
        return self.start_all(network, words, lambda rank: {"RANK": str(rank), **common})


class MlxRing(Library):
    key = "mlx"
    title = "MLX, ring"

    def prepare(self, options):
        self.interpreter = interpreter_with("mlx.core", options)

    def run(self, network, arguments):
        first = 53_000 + int(time.monotonic() * 10) % 4_000
        with tempfile.NamedTemporaryFile("w", prefix="ringlet-compare-", suffix=".json") as file:
            json.dump([[f"{address}:{first + rank}"] for rank, address in enumerate(network.addresses)], file)
            file.flush()
            words = [self.interpreter, HERE / "measure_mlx.py", *arguments]
            return self.start_all(network, words, lambda rank: {"MLX_RANK": str(rank), "MLX_HOSTFILE": file.name})


LIBRARIES = {library.key: library for library in (Ringlet, RingletTcp, OpenMpi, OpenMpiMemory, Mpich, Gloo, TorchGloo, MlxRing)}


def rows_of(printed):
    """The measured rows among a program's lines. A wrong result ends everything."""
    rows = []
    for line in printed.splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if not row["right"]:
            sys.exit(f"compare: wrong result: {line}")
        rows.append(row)
    return rows
