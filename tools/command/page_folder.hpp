#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ringlet::command {

/// Packs all files of a folder and its subfolders in the form that a rank serves (transport/web/page_bundle.hpp). Each file is also packed
/// with gzip if that is shorter. Hidden files are left out. Throws `std::runtime_error` with a sentence if the folder or a file cannot be
/// read, if there is no index.html, or if a rank could not serve it: more bytes than a bundle takes, or a name for which no browser asks.
std::vector<std::byte> pack_page_folder(const std::string& folder);

}  // namespace ringlet::command
