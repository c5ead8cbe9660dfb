#include <cstdio>
#include <fstream>
#include <sstream>

#include "bindings/generator/surfaces.hpp"
#include "core/optimizers/optimizer_table.hpp"
#include "core/plan/collective_table.hpp"

// Writes the files of other languages that follow from the library's tables, or compares them with the existing files.

namespace {

constexpr const char* kUsage = R"(Usage: generate_bindings (--write | --check) FOLDER

Makes what the C API and the npm package have of the library's tables (dtypes, collectives, optimizers), in the project's FOLDER.

  --write   writes the files that differ
  --check   names the files that differ, and collectives and optimizers that docs/library.md or docs/mlx.md does not name; the exit code is then 1

Example: generate_bindings --check .
)";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}

/// Counts and prints the names of the tables that a page of the documentation should contain but does not.
int check_page(const std::string& folder, const std::string& page) {
  using namespace ringlet;
  const std::string text = read(folder + "/" + page);
  int missing = 0;
  const auto need = [&](std::string_view name) {
    if (text.find(name) != std::string::npos) return;
    ++missing;
    std::printf("lacks '%s': %s\n", std::string(name).c_str(), page.c_str());
  };
  for (const CollectiveFacts& facts : kCollectives) need(name_of(facts.kind));
  for_each_optimizer([&](const auto& row) { need("`" + std::string(row.name) + "`"); });
  return missing;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "--write" && mode != "--check") {
    std::fputs(kUsage, argc == 2 && std::string(argv[1]) == "--help" ? stdout : stderr);
    return argc == 2 && std::string(argv[1]) == "--help" ? 0 : 2;
  }
  int differing = 0;
  for (const auto& files : {ringlet::generator::c_files(), ringlet::generator::typescript_files()})
    for (const auto& [path, text] : files) {
      const std::string place = std::string(argv[2]) + "/" + path;
      if (read(place) == text) continue;
      ++differing;
      if (mode == "--write" && !write(place, text)) {
        std::fprintf(stderr, "generate_bindings: cannot write '%s'\n", place.c_str());
        return 1;
      }
      std::printf("%s %s\n", mode == "--write" ? "written:" : "differs from the tables:", path.c_str());
    }
  if (mode == "--write") return 0;
  if (differing > 0) std::puts("Run: cmake --build --preset release --target update_bindings");
  return differing + check_page(argv[2], "docs/library.md") + check_page(argv[2], "docs/mlx.md") > 0 ? 1 : 0;
}
