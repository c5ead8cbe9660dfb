#pragma once

#include <string>

namespace ringlet::command {

/// Returns `text` as a QR code of half blocks, with two rows in one line of text and a quiet zone around them. With `colours` it is black
/// on white in any terminal. Otherwise the blocks are the light modules, which suits a dark terminal. Returns an empty text if `text` is
/// too long.
std::string qr_code(const std::string& text, bool colours);

}  // namespace ringlet::command
