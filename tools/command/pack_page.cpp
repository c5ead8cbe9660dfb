// ringlet_pack_page FOLDER FILE: packs the page in FOLDER for the `ringlet` command to embed. Without FOLDER/index.html, FILE becomes
// empty.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "tools/command/page_folder.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ringlet_pack_page FOLDER FILE\n");
    return 2;
  }
  try {
    std::vector<std::byte> packed;
    if (std::filesystem::exists(std::filesystem::path(argv[1]) / "index.html")) packed = ringlet::command::pack_page_folder(argv[1]);
    std::ofstream file(argv[2], std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(packed.data()), static_cast<std::streamsize>(packed.size()));
    if (!file.flush()) throw std::runtime_error(std::string("cannot write '") + argv[2] + "'");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ringlet_pack_page: %s\n", error.what());
    return 1;
  }
  return 0;
}
