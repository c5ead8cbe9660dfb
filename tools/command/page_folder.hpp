#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ringlet::command {

/// Packs all files of a folder, and of those below it, as a rank serves them (transport/web/page_bundle.hpp), each also in gzip form where
/// that is shorter. Hidden files are left out. Throws `std::runtime_error` with a sentence where the folder or a file cannot be read, or
/// where there is no index.html.
std::vector<std::byte> pack_page_folder(const std::string& folder);

}  // namespace ringlet::command
