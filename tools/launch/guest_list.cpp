#include "tools/launch/guest_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringlet::launch {

namespace {

constexpr std::size_t kMaxLineBytes = 1 << 20;

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> names;
  while (!line.empty()) {
    const auto end = std::min(line.find('\t'), line.size());
    names.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> difference(const std::vector<std::string>& of, const std::vector<std::string>& without) {
  std::vector<std::string> result;
  std::set_difference(of.begin(), of.end(), without.begin(), without.end(), std::back_inserter(result));
  return result;
}

}  // namespace

std::vector<std::string> GuestList::feed(std::string_view bytes) {
  std::vector<std::string> sentences;
  for (const char letter : bytes) {
    if (letter == '\n')
      compare(split(std::exchange(line_, {})), sentences);
    else if (line_.size() < kMaxLineBytes)
      line_ += letter;
  }
  return sentences;
}

void GuestList::compare(std::vector<std::string> names, std::vector<std::string>& sentences) {
  const auto gone = difference(names_, names);
  const auto come = difference(names, names_);
  auto present = names_.size();
  for (const std::string& name : gone) sentences.push_back(fmt::format("a browser left: {}; {} of {} are here", name, --present, wanted_));
  for (const std::string& name : come) sentences.push_back(fmt::format("browser {} of {} is here: {}", ++present, wanted_, name));
  names_ = std::move(names);
}

}  // namespace ringlet::launch
