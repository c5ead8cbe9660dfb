#include "tools/command/qr_code.hpp"

#include <qrencode.h>

#include <array>
#include <memory>

namespace ringlet::command {

namespace {

struct FreeCode {
  void operator()(QRcode* code) const { QRcode_free(code); }
};

}  // namespace

std::string qr_code(const std::string& text, bool colours) {
  constexpr int kQuietZone = 2;  // the standard asks for four, but two save lines and suffice for readers
  const std::unique_ptr<QRcode, FreeCode> code(QRcode_encodeString(text.c_str(), 0, QR_ECLEVEL_L, QR_MODE_8, 1));
  if (!code) return {};
  const auto is_dark = [&](int row, int column) {
    if (row < 0 || column < 0 || row >= code->width || column >= code->width) return false;
    return (code->data[row * code->width + column] & 1) != 0;
  };
  // The index has a bit for the lower half and one for the upper half.
  const std::array<const char*, 4> blocks{" ", "\u2584", "\u2580", "\u2588"};
  std::string drawing;
  for (int row = -kQuietZone; row < code->width + kQuietZone; row += 2) {
    if (colours) drawing += "\x1b[38;5;16;48;5;231m";
    for (int column = -kQuietZone; column < code->width + kQuietZone; ++column) {
      const bool upper = is_dark(row, column) == colours;
      // The row below the quiet zone is not drawn.
      const bool lower = row + 1 < code->width + kQuietZone ? is_dark(row + 1, column) == colours : false;
      drawing += blocks[(upper ? 2U : 0U) + (lower ? 1U : 0U)];
    }
    drawing += colours ? "\x1b[0m\n" : "\n";
  }
  return drawing;
}

}  // namespace ringlet::command
