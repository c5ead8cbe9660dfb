"""The rules that the checks hold the sources against. Everything that someone may want to change about a rule is here."""

from typing import NamedTuple, Tuple

CODE = (".cpp", ".hpp", ".c", ".h", ".ts", ".mjs", ".js", ".py", ".css", ".html", ".proto", ".sh", ".cmake", "CMakeLists.txt")
CPP = (".cpp", ".hpp", ".c", ".h")
PROSE = (".md",)
# A fuzzer's inputs are no text.
NOT_READ = ("tests/fuzz/corpus/",)
# Other programs make these files, or decide their form.
GENERATED = ("wasm/package-lock.json", "docs/images/")

# clang-format breaks lines at 140 where it can; a longer line is a text in one piece.
LINE_LENGTH = 160
# Settings of tests are long. A line that is only a list of sources may have any length.
CMAKE_LINE_LENGTH = 200
# This is for documents. Rows of tables, and lines with a link or an image, cannot be broken.
PROSE_LINE_LENGTH = 230

# Files and names of the sources that these documents have between backquotes must exist. Words in capitals stand for any.
NAMES_SOURCES = ("ARCHITECTURE.md", "HACKING.md", "docs/internals/")

FILE_LINES = 400
# These files are longer, and yet do one job. A limit that a file no longer needs is lowered or removed.
FILE_LINES_OF = {}


class Banned(NamedTuple):
    pattern: str
    where: Tuple[str, ...]  # prefixes of paths; empty: everywhere
    endings: Tuple[str, ...]  # of paths; empty: all
    instead: str
    example: str  # a line that this finds


SOURCES = (
    "bench/",
    "bindings/",
    "core/",
    "examples/",
    "include/",
    "native/",
    "proto/",
    "python/",
    "sim/",
    "simd/",
    "tests/",
    "tools/",
    "transport/",
    "wasm/",
)

BANNED = [
    # These words mark work that is left open.
    Banned(r"\b(TODO|FIXME|XXX)\b", (), (), "finish it, or say in the documents what is missing", "// TODO: the rest"),
    Banned(
        r"not implemented|unimplemented|\bplaceholder\b", SOURCES, (), "implement it, or leave it out", 'throw Error("not implemented");'
    ),
    Banned(r"<<<<<<< |>>>>>>> ", (), (), "resolve the conflict", ">>>>>>> main"),
    # These belong to one machine or one person.
    Banned(r"(?<![\w.$}])/(work|root|home|Users)/\w", (), (), "a path that every machine has", "cd /home/someone/ringlet"),
    Banned(r"(?<![\w.$}])/tmp/[A-Za-z]", SOURCES, (), "a temporary directory of the run's own", 'open("/tmp/ringlet.log")'),
    Banned(r"(?i)co-authored-by", (), (), "names stand in the history", "Co-authored-by: someone"),
    Banned(
        r'"resolved": "http',
        ("wasm/",),
        ("package-lock.json",),
        "npm's option omit-lockfile-registry-resolved",
        '"resolved": "https://a.host/p.tgz"',
    ),
    # Results must not depend on compiler or machine.
    Banned(
        r"-ffast-math|-Ofast|-mrelaxed-simd|-ffp-contract=(fast|on)",
        (),
        ("CMakeLists.txt", ".cmake", ".json"),
        "exact arithmetic",
        "-ffast-math",
    ),
    Banned(
        r"\bxsimd::(min|max|fma|fms|reduce_add)\b",
        ("simd/",),
        CPP,
        "the definitions of simd/, which are the same on all targets",
        "xsimd::max(a, b)",
    ),
    # These make tests depend on time or on others' processes.
    Banned(r"\b(pkill|killall)\b", (), (), "ending a process by its id", "pkill ringlet"),
    Banned(
        r"\bsleep_for\b|\bsleep_until\b|\b(u|nano)?sleep\(",
        ("tests/core/", "tests/native/", "tests/sim/", "tests/transport/", "tests/web/"),
        CPP,
        "waiting for what is to happen",
        "std::this_thread::sleep_for(1s);",
    ),
    # Some rooms know no process, and a library prints nothing.
    Banned(
        r"\bstd::(cout|cerr|clog)\b",
        ("core/", "simd/", "transport/", "native/", "include/", "bindings/", "python/"),
        CPP,
        "a status, or the handler of warnings",
        "std::cerr << text;",
    ),
    Banned(
        r"\bprint\((stdout|\"|fmt)|\bstd::(cout|puts|putchar|printf)\b",
        ("tools/",),
        CPP,
        "print_out() of tools/command/standard_output.hpp, which notices what cannot be written",
        'fmt::print("{}", text);',
    ),
    Banned(
        r"\b(steady|system|high_resolution)_clock\b", ("core/", "simd/", "include/"), CPP, "time that is passed in", "steady_clock::now()"
    ),
    Banned(
        r"\bgetenv\(",
        ("core/", "simd/", "transport/", "include/"),
        CPP,
        "an option; native/environment reads variables",
        'std::getenv("HOME")',
    ),
    # Bindings to several languages show these texts as they are.
    Banned(
        r'^(?!\s*//)(?:[^"]*"[^"]*")*[^"]*"[^"]*\w::[a-z_]',
        ("core/", "native/"),
        CPP,
        "a text that reads right in every language: 'the option rank', 'commit()'",
        'refuse("InitOptions::rank is -1");',
    ),
    Banned(r"\b(co_await|co_return|co_yield)\b", SOURCES, CPP, "callbacks: Emscripten 3.1 has no coroutines", "co_await link;"),
    Banned(r"^using namespace", (), (".hpp", ".h"), "qualified names in headers", "using namespace std;"),
    Banned(r"#\s*define\s+_GNU_SOURCE", SOURCES, CPP, "nothing: g++ and Clang define it for C++", "#define _GNU_SOURCE"),
    # A checker is obeyed or configured, not silenced line by line.
    Banned(
        r"NOLINT|clang-format off|prettier-ignore|@ts-(ignore|expect-error|nocheck)|fmt: off",
        SOURCES,
        (),
        "code that needs no exception",
        "// NOLINTNEXTLINE",
    ),
    # Comments are sentences that begin with what they are about.
    Banned(r"^\s*(//+|#|\*)\s*(\.\.\.|…)|(//|# ).*[^.]…$", SOURCES, (), "a whole sentence", "// ... and so on"),
]


class Confined(NamedTuple):
    header: str  # pattern of what stands between the brackets or quotes
    allowed: Tuple[str, ...]  # prefixes of paths that may include it
    reason: str
    example: str


# Tests and measurements may include what they need.
# Names sources that it compiles itself.
ALSO_LISTS_SOURCES = "bench/compare/libraries.py"
FREE_TO_INCLUDE = ("tests/", "bench/")
OPERATING_SYSTEM = r"(sys|netinet|arpa|net|linux|mach)/.*|(unistd|poll|fcntl|ifaddrs|netdb|signal|pthread|dlfcn|spawn)\.h"
CONFINED = [
    Confined(
        r"thread|shared_mutex|condition_variable|future|semaphore|latch|barrier",
        ("native/", "tools/", "bindings/", "python/"),
        "everything below the façade belongs to one thread",
        "thread",
    ),
    Confined(
        r"mutex|atomic",
        (
            "native/",
            "tools/",
            "bindings/",
            "python/",
            "transport/uv/loop_state.hpp",
            "transport/local/mark.hpp",
            "transport/local/ring_memory.hpp",
            "include/ringlet/trace.hpp",
        ),
        "everything below the façade belongs to one thread",
        "mutex",
    ),
    Confined(r"ctime|time\.h", ("native/", "tools/", "transport/", "examples/"), "the core is told the time", "ctime"),
    Confined(
        OPERATING_SYSTEM,
        ("transport/", "native/", "tools/", "examples/", "simd/platform/"),
        "the core knows no operating system",
        "sys/socket.h",
    ),
    Confined(
        r"filesystem|fstream",
        (
            "native/",
            "tools/",
            "examples/",
            "bindings/generator/",
            "include/ringlet/checkpoint.hpp",
            "include/ringlet/elastic.hpp",
            "transport/uv/interface_traits_linux.cpp",
        ),
        "files are opened above the transport",
        "fstream",
    ),
    Confined(r"iostream", ("tools/", "examples/"), "the library prints nothing", "iostream"),
    Confined(r"uv\.h", ("transport/uv/", "native/", "tools/"), "one room speaks to libuv", "uv.h"),
    Confined(r"openssl/.*", ("transport/crypto/", "transport/web/", "native/", "tools/"), "one room speaks to OpenSSL", "openssl/evp.h"),
    Confined(r"botan/.*", ("tools/pairing/",), "pairing alone needs it", "botan/srp6.h"),
    Confined(r"http_parser\.h", ("transport/web/",), "one room speaks HTTP", "http_parser.h"),
    Confined(r"CLI/.*", ("tools/", "examples/"), "command lines are read by commands", "CLI/CLI.hpp"),
    Confined(r"(Eigen|eigen3)/.*", ("examples/",), "the library computes with its own kernels", "Eigen/Core"),
    Confined(r"xsimd/.*", ("simd/",), "one room has kernels", "xsimd/xsimd.hpp"),
    Confined(
        r"protozero/.*",
        ("core/", "tools/"),
        "messages are written by the wire's rooms",
        "protozero/pbf_reader.hpp",
    ),
    Confined(r"nanobind/.*", ("python/",), "one room speaks to Python", "nanobind/nanobind.h"),
    Confined(r"mlx/.*", ("python/mlx/",), "one package belongs to a version of MLX", "mlx/array.h"),
    Confined(r"emscripten.*", ("wasm/",), "one room is for browsers", "emscripten.h"),
    Confined(r"windows\.h|winsock2\.h", (), "nothing is written for Windows", "windows.h"),
    Confined(r"bits/.*", (), "these are one library's own", "bits/stdc++.h"),
]
# Users compile the public headers and the examples.
PUBLIC_INCLUDES = r"ringlet/[\w/]+\.(hpp|h)|dlpack/dlpack\.h|[a-z_]+(\.h)?"
EXAMPLE_INCLUDES = PUBLIC_INCLUDES + r"|train_text/.*|Eigen/.*|CLI/CLI\.hpp|fmt/.*|nlohmann/.*|sys/ioctl\.h"

# These are declared for callers, though only the headers themselves use them.
UNREFERENCED_SYMBOLS = ("Void",)

# Ringlet's own programs set these variables for each other.
INTERNAL_VARIABLES = ("RINGLET_COORDINATOR_FD", "RINGLET_PAGE_FD", "RINGLET_PRESENCE_FD")
