#include "core/base/printable.hpp"

#include <utf8/unchecked.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace ringlet {

namespace {

struct Range {
  std::uint32_t first, last;
};

// Control characters (C0, C1), format characters of Unicode 15 (Cf) that hide or reorder text, and the separators of lines and paragraphs.
constexpr std::array<Range, 12> kHidden{{{0x00, 0x1f},
                                         {0x7f, 0x9f},
                                         {0xad, 0xad},
                                         {0x061c, 0x061c},
                                         {0x180e, 0x180e},
                                         {0x200b, 0x200f},
                                         {0x2028, 0x202e},
                                         {0x2060, 0x206f},
                                         {0xfeff, 0xfeff},
                                         {0xfff9, 0xfffb},
                                         {0xe0000, 0xe007f},
                                         {0x1d173, 0x1d17a}}};

bool is_hidden(std::uint32_t character) {
  return std::any_of(kHidden.begin(), kHidden.end(),
                     [&](const Range& range) { return character >= range.first && character <= range.last; });
}

/// Calls `use(part, shown)` for each character, and for each byte that belongs to none.
void for_each_character(std::string_view text, auto use) {
  for (auto at = text.begin(); at != text.end();) {
    const auto end_of_valid = utf8::find_invalid(at, text.end());
    while (at != end_of_valid) {
      const auto begin = at;
      const bool hidden = is_hidden(utf8::unchecked::next(at));
      use(std::string_view(&*begin, static_cast<std::size_t>(at - begin)), !hidden);
    }
    if (at != text.end()) use(std::string_view(&*at++, 1), false);
  }
}

}  // namespace

bool is_printable(std::string_view text) {
  bool all = true;
  for_each_character(text, [&](std::string_view, bool shown) { all &= shown; });
  return all;
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](std::string_view part, bool shown) { result += shown ? part : "?"; });
  return result;
}

std::string_view cut_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0u) == 0x80u) --most;
  return text.substr(0, most);
}

}  // namespace ringlet
