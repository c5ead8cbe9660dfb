#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/temporary_directory.hpp"

namespace train_text {

/// A folder for one test, removed at the end.
class Folder {
 public:
  void write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name, std::ios::binary) << text;
  }
  std::filesystem::path path() const { return directory_.path(); }

 private:
  ringlet::test::TemporaryDirectory directory_;
};

}  // namespace train_text
