#include "tools/command/table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringlet::command {

namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace

std::vector<std::string> aligned(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Cells& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column) widths[column] = std::max(widths[column], width_of(row[column]));
  std::vector<std::string> lines;
  for (const Cells& row : rows) {
    std::string& line = lines.emplace_back();
    for (std::size_t column = 0; column < row.size(); ++column) {
      line += row[column];
      if (column + 1 < row.size()) line.append(widths[column] - width_of(row[column]) + 2, ' ');
    }
  }
  return lines;
}

std::string cut(const std::string& text, std::size_t characters) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins_character(text[i]) && ++width > characters) return text.substr(0, i);
  return text;
}

std::string highlighted(const std::string& line, std::string_view code) { return fmt::format("\x1b[{}m{}\x1b[0m", code, line); }

}  // namespace ringlet::command
