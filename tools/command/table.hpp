#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringlet::command {

using Cells = std::vector<std::string>;

/// Returns a line for each row, with all columns but the last one padded to the same width. Widths count characters and not bytes, because
/// names may be in any script.
std::vector<std::string> aligned(const std::vector<Cells>& rows);

/// Returns the first characters of the text.
std::string cut(const std::string& text, std::size_t characters);

/// Returns the line in a colour or style by its ANSI code, such as "1" for bold.
std::string highlighted(const std::string& line, std::string_view code);

}  // namespace ringlet::command
