#pragma once

#include <string>
#include <vector>

namespace ringlet::generator {

/// A file that is generated from the library's tables.
struct GeneratedFile {
  std::string path;  // relative to the project's folder
  std::string text;
};

std::vector<GeneratedFile> c_files();
std::vector<GeneratedFile> typescript_files();

}  // namespace ringlet::generator
