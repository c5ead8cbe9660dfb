#pragma once

#include <filesystem>

#include "corpus.hpp"

namespace train_text {

/// The bytes of a file; or, for a folder, of every text file under it (endings of source and documentation), in the order of their
/// relative paths. Hidden folders, build folders and node_modules are left out. Throws `InputError` for what is missing or unreadable.
Bytes load_text(const std::filesystem::path& path);

}  // namespace train_text
