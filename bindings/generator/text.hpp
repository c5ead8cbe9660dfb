#pragma once

#include <array>
#include <charconv>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// Formats text of the generated languages. Lines have 140 columns, which is also the setting of clang-format and Prettier.
namespace ringlet::generator {

inline constexpr std::size_t kColumns = 140;

/// The comment at the top of every generated file.
inline constexpr std::string_view kNotice = "Made by bindings/generator from the library's tables: see ARCHITECTURE.md, \"Tables\".";

inline std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : std::string(between)) + parts[i];
  return text;
}

/// Wraps `text`: `first` comes before the first word, `next` at the start of further lines, and `last` after the last word.
inline std::string wrapped(std::string_view text, const std::string& first, const std::string& next, const std::string& last) {
  std::istringstream words{std::string(text)};
  const std::size_t open = first.rfind('\n') + 1;  // start of the line to which the words are added
  std::string lines = first.substr(0, open), line = first.substr(open);
  const std::string begun = line;
  for (std::string word; words >> word;) {
    const bool begins = line == begun || line == next;
    if (!begins && line.size() + 1 + word.size() + (words.peek() == EOF ? last.size() : 0) > kColumns) {
      lines += line + "\n";
      line = next + word;
    } else {
      line += (begins ? "" : " ") + word;
    }
  }
  return lines + line + last + "\n";
}

/// Returns "head(a, b)tail". If the line gets too long, it continues in further lines, aligned with the first parameter.
inline std::string call_text(const std::string& head, const std::vector<std::string>& parameters, const std::string& tail) {
  const std::string indent(head.size() + 1, ' ');
  std::string lines, line = head + "(";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool is_last = i + 1 == parameters.size();
    const std::string part = parameters[i] + (is_last ? ")" + tail : ",");
    if (line.size() > indent.size() && line.size() + 1 + part.size() > kColumns) {
      lines += line + "\n";
      line = indent + part;
    } else {
      line += (line.size() == indent.size() ? "" : " ") + part;
    }
  }
  return lines + line + "\n";
}

/// Returns the shortest text that is read back as the same number, such as 0.9 or 1e-8.
inline std::string number(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  // std::to_chars() writes an exponent with at least two digits.
  for (const std::string_view zero : {"e-0", "e+0"})
    if (const std::size_t at = text.find(zero); at != std::string::npos) text.erase(at + 2, 1);
  return text;
}

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return lower;
}

inline std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& letter : upper)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  return upper;
}

/// Turns "weight_decay" into "weightDecay".
inline std::string camel_case(std::string_view text) {
  std::string camel;
  for (std::size_t i = 0; i < text.size(); ++i)
    camel += text[i] == '_' && i + 1 < text.size() ? upper_case(text.substr(++i, 1)) : std::string(1, text[i]);
  return camel;
}

inline std::string sentence(std::string_view text) {
  return text.empty() ? "" : upper_case(text.substr(0, 1)) + std::string(text.substr(1)) + ".";
}

}  // namespace ringlet::generator
