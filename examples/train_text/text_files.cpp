#include "text_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "input_error.hpp"

namespace train_text {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 14> kTextEndings{".c",  ".cmake", ".cpp",   ".css", ".h",  ".hpp", ".html",
                                                        ".js", ".md",    ".proto", ".py",  ".sh", ".ts",  ".txt"};

bool is_text_file(const fs::directory_entry& entry) {
  return entry.is_regular_file() && !entry.is_symlink() && std::ranges::count(kTextEndings, entry.path().extension().string()) > 0;
}

bool is_skipped_folder(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with(".") || name.starts_with("build") || name == "node_modules";
}

std::vector<fs::path> text_files_under(const fs::path& folder) {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory() && is_skipped_folder(entry->path())) {
      entry.disable_recursion_pending();
    } else if (is_text_file(*entry)) {
      files.push_back(entry->path().lexically_relative(folder));
    }
  }
  // Sorting strings gives the same order on all systems; fs::path and directory listings do not.
  std::ranges::sort(files, {}, [](const fs::path& path) { return path.generic_string(); });
  return files;
}

void append_file(const fs::path& file, Bytes& text) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InputError(fmt::format("cannot read {}: check that the file exists and may be read", file.string()));
  text.insert(text.end(), std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

}  // namespace

Bytes load_text(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) throw InputError(fmt::format("there is no file or folder {}: name the text with --data", path.string()));
  Bytes text;
  try {
    if (fs::is_directory(path)) {
      for (const fs::path& file : text_files_under(path)) append_file(path / file, text);
    } else {
      // A device or a pipe may have no end.
      if (!fs::is_regular_file(path))
        throw InputError(fmt::format("{} is neither a file nor a folder: only these are read; name the text with --data", path.string()));
      append_file(path, text);
    }
  } catch (const fs::filesystem_error& error) {
    throw InputError(fmt::format("cannot read {}: {}", path.string(), error.code().message()));
  }
  if (text.empty()) throw InputError(fmt::format("{} holds no text: name another file or folder with --data", path.string()));
  return text;
}

}  // namespace train_text
