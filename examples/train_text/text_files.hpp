#pragma once

#include <filesystem>

#include "corpus.hpp"

namespace train_text {

/// Returns the bytes of a file. For a folder, returns those of all text files under it (chosen by the file name endings of source and
/// documentation), in the order of their relative paths. Skips hidden folders, build folders and node_modules. Throws `InputError` if
/// something is missing or unreadable, and for what is neither a file nor a folder, such as a device or a pipe.
Bytes load_text(const std::filesystem::path& path);

}  // namespace train_text
