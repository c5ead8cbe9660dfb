"""Tests that each check and each rule finds what it is there for, and nothing in a good repository."""

import re
import unittest
from typing import Dict, List

import rules
from checks import CHECKS
from public_symbols import c_symbols, cpp_symbols
from tree import Tree

PACKAGE = '{"version": "0.1.0", "license": "MIT"}\n'
LOCK = '{"version": "0.1.0", "packages": {"": {"version": "0.1.0"}}}\n'
# Every check finds nothing in this repository.
GOOD = {
    "CMakeLists.txt": "project(Ringlet VERSION 0.1.0 LANGUAGES CXX)\nadd_library(ringlet core/plan.cpp)\n",
    "CHANGELOG.md": "## [0.1.0]\n",
    "LICENSE": "MIT License\n\nCopyright (c) The Ringlet authors\n",
    "README.md": "# Ringlet\n\n[MIT](LICENSE), [more](docs/more.md#a-heading)\n\nfind_package(Ringlet 0.1)\n",
    "HACKING.md": "`core/plan.hpp`, `core/NAME.cpp`, `core/*.cpp`, `core/`, `ringlet::init()`, `build/page`\n",
    "docs/more.md": "# A heading\n\n`RINGLET_RANK` and `ringlet::init`; `ringlet_init` for C\n",
    "core/plan.hpp": "#pragma once\n\n#include <vector>\n",
    "core/plan.cpp": '#include "core/plan.hpp"\n',
    "examples/minimal.cpp": "#include <ringlet/group.hpp>\n",
    "examples/CMakeLists.txt": "add_executable(${name} ${name}.cpp)\n",
    "include/ringlet/c/base.h": '#pragma once\n/** The library\'s version, "0.1.0". */\nvoid ringlet_init(void);\n',
    "include/ringlet/group.hpp": "#pragma once\nnamespace ringlet {\nvoid init();\n}\n",
    "native/environment.cpp": 'const char* const kName = "RINGLET_RANK";\n',
    "native/CMakeLists.txt": "target_sources(ringlet environment.cpp)\n",
    "scripts/demo": "#!/bin/sh\ncase $1 in --help | -h) ;; esac\n",
    "wasm/package.json": PACKAGE,
    "wasm/package-lock.json": LOCK,
}

# For each check, these are changes that make the good repository a bad one.
BAD: Dict[str, List[Dict[str, str]]] = {
    "line_length": [
        {"core/plan.cpp": "// " + "x" * rules.LINE_LENGTH + "\n"},
        {"core/CMakeLists.txt": "x" * (rules.CMAKE_LINE_LENGTH + 1) + "\n"},
        {"scripts/demo": "#!/bin/sh\n# --help | -h)" + "x" * rules.LINE_LENGTH + "\n"},
        {"docs/more.md": "# A heading\n" + "x" * (rules.PROSE_LINE_LENGTH + 1) + "\n"},
    ],
    "white_space": [{"core/plan.cpp": text} for text in ("int a;", "int a;\n\n", "int a; \n", "\tint a;\n", "int a;\r\n")],
    "banned": [{"core/plan.cpp": "// TODO: the rest\n"}],
    "includes": [
        {"core/plan.cpp": "#include <thread>\n"},
        {"core/plan.cpp": '#include "core/other.cpp"\n'},
        {"include/ringlet/group.hpp": "#pragma once\n#include <fmt/core.h>\n"},
        {"examples/minimal.cpp": "#include <uv.h>\n"},
        {"examples/minimal.cpp": '#include "core/plan.hpp"\n'},
    ],
    "include_guard": [{"core/plan.hpp": "#include <vector>\n"}, {"core/plan.hpp": "#ifndef PLAN_H\n"}],
    "file_length": [{"core/plan.cpp": "\n" * (rules.FILE_LINES + 1)}] + [{path: "int a;\n"} for path in list(rules.FILE_LINES_OF)[:1]],
    "built": [{"core/dead.cpp": ""}, {"native/other.cpp": ""}, {"examples/deeper/other.cpp": ""}],
    "licence": [
        {"LICENSE": ""},
        {"LICENSE": "MIT License\n\nCopyright (c) Somebody\n"},
        {"README.md": ""},
        {"wasm/package.json": '{"version": "0.1.0"}'},
    ],
    "versions": [
        {"CMakeLists.txt": "project(Ringlet)\n"},
        {"CHANGELOG.md": "## [0.0.9]\n"},
        {"README.md": "find_package(Ringlet 0.2)\n"},
        {"include/ringlet/c/base.h": '/** The library\'s version, "0.2.0". */\n'},
        {"wasm/package.json": '{"version": "0.2.0", "license": "MIT"}'},
        {"wasm/package-lock.json": LOCK.replace("0.1.0", "0.2.0", 1)},
        {"wasm/package-lock.json": '{"version": "0.1.0", "packages": {"": {"version": "0.2.0"}}}'},
    ],
    "public_symbols": [
        {"include/ringlet/group.hpp": "namespace ringlet {\nvoid finish();\n}\n"},
        {"include/ringlet/c/base.h": "void ringlet_finish(void);\n"},
    ],
    "environment_variables": [{"native/environment.cpp": 'const char* const kName = "RINGLET_SECRET_SWITCH";\n'}],
    "links": [
        {"README.md": "[nothing](docs/nothing.md)\n"},
        {"README.md": "[nothing](docs/more.md#no-heading)\n"},
        {"README.md": '<img src="docs/nothing.svg">\n'},
    ],
    "names_of_sources": [
        {"ARCHITECTURE.md": "`core/plan.cxx`\n"},
        {"docs/internals/plans.md": "`core/*_plans.hpp`\n"},
        {"HACKING.md": "`ringlet::finish()`\n"},
    ],
    "usage": [{"scripts/demo": "#!/bin/sh\n"}],
}


class SelfTest(unittest.TestCase):
    def test_nothing_is_found_in_what_is_as_it_should_be(self) -> None:
        for name, check in CHECKS.items():
            with self.subTest(name):
                self.assertEqual([str(finding) for finding in check(Tree(GOOD))], [])

    def test_each_check_finds_its_samples(self) -> None:
        self.assertEqual(set(BAD), set(CHECKS))
        for name, samples in BAD.items():
            for sample in samples:
                with self.subTest(name, sample=sample):
                    findings = list(CHECKS[name](Tree({**GOOD, **sample})))
                    self.assertTrue(findings)
                    self.assertTrue({finding.path for finding in findings} & set(sample) or name in ("versions", "licence"), findings)

    def test_each_banned_pattern_finds_its_example(self) -> None:
        for rule in rules.BANNED:
            with self.subTest(rule.pattern):
                folder = rule.where[0] if rule.where else ""
                path = folder + ("file" if not rule.endings else rule.endings[0] if "." not in rule.endings[0][1:] else rule.endings[0])
                self.assertTrue(list(CHECKS["banned"](Tree({path: rule.example + "\n"}))), path)

    def test_each_confined_header_is_refused_elsewhere_and_taken_where_it_belongs(self) -> None:
        for rule in rules.CONFINED:
            with self.subTest(rule.header):
                self.assertRegex(rule.example, f"^({rule.header})$")
                text = f"#include <{rule.example}>\n"
                self.assertTrue(list(CHECKS["includes"](Tree({"proto/file.cpp": text}))))
                self.assertFalse(list(CHECKS["includes"](Tree({"tests/file.cpp": text}))))
                for folder in rule.allowed:
                    path = folder if folder.endswith(".hpp") else folder + "file.cpp"
                    others = [found for found in CHECKS["includes"](Tree({path: text})) if " is for " in found.message]
                    self.assertEqual(others, [])

    def test_each_check_of_the_core_knows_the_headers_of_time_threads_and_sockets(self) -> None:
        for header in ("thread", "mutex", "ctime", "sys/socket.h", "unistd.h", "netinet/in.h", "emscripten.h", "uv.h"):
            for folder in ("core/plan/", "simd/"):
                with self.subTest(header=header, folder=folder):
                    self.assertTrue(list(CHECKS["includes"](Tree({folder + "file.cpp": f"#include <{header}>\n"}))))

    def test_declarations_are_read(self) -> None:
        header = """
#pragma once
#define RINGLET_NOTHING(x) hidden_by_macro(x)
namespace ringlet {
namespace detail { void hidden(); }
class Forward;
/// A comment with word(s).
enum class Kind : std::uint8_t { one = 1, two };
struct Options { int count = compute(1); bool operator==(const Options&) const = default; };
template <class T> concept Value = requires(T t) { t.call(); };
using Handler = std::function<void(int)>;
class [[nodiscard]] Work {
 public:
  explicit Work(int a) : a_{a}, b_(helper(a)) { called(); }
  ~Work();
  [[nodiscard]] bool done() const noexcept { return inner(); }
  template <class F> requires(!std::is_same_v<F, int>) auto map(F f) const -> decltype(f(1)) { return f(1); }
  struct Nested { void inside(); };
 private:
  void secret();
  int a_ = 0;
};
inline constexpr int kLimit = limit(3);
[[nodiscard]] inline Work start(const Options& options = {}) { return Work(local(options)); }
}
"""
        names = [name for name, _ in cpp_symbols(header)]
        self.assertEqual(
            sorted(names), sorted(["Forward", "Kind", "Options", "Value", "Handler", "Work", "done", "map", "Nested", "inside", "start"])
        )
        self.assertEqual(dict(cpp_symbols(header))["start"], 24)
        self.assertEqual(c_symbols("/* ringlet_not(1) */\nRINGLET_API int32_t ringlet_open(int a);\n"), [("ringlet_open", 2)])

    def test_each_pattern_compiles(self) -> None:
        for pattern in [rule.pattern for rule in rules.BANNED] + [rule.header for rule in rules.CONFINED]:
            re.compile(pattern)


if __name__ == "__main__":
    unittest.main()
