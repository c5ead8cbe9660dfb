#pragma once

#include <string>

namespace ringlet::command {

/// `text` as a QR code in half blocks, one line of text for two rows, with the quiet zone around it. With `colours` black on white whatever
/// the terminal's own colours are; otherwise the blocks are what is light, for a dark terminal. Empty where the text is too long.
std::string qr_code(const std::string& text, bool colours);

}  // namespace ringlet::command
