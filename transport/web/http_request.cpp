#include "transport/web/http_request.hpp"

#include <algorithm>

namespace ringlet::web {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](char a, char b) { return lower(a) == lower(b); });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

const std::string* HttpRequest::find(std::string_view name) const {
  for (const auto& [header, value] : headers)
    if (header == name) return &value;
  return nullptr;
}

std::size_t HttpRequest::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(headers.begin(), headers.end(), [&](const auto& header) { return header.first == name; }));
}

bool HttpRequest::lists(std::string_view name, std::string_view token) const {
  for (const auto& [header, value] : headers) {
    if (header != name) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const auto comma = std::min(rest.find(','), rest.size());
      if (same_word(trimmed(rest.substr(0, comma)), token)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

RequestParser::State RequestParser::feed(ConstBytes& input) {
  const std::size_t used = parse(input.first(std::min(input.size(), bytes_left_)));
  input = input.subspan(used);
  bytes_left_ -= used;
  const State state = judge();
  return state == State::incomplete && bytes_left_ == 0 ? State::too_long : state;
}

void RequestParser::add_to_name(std::string_view text) {
  if (std::exchange(in_value_, false)) request_.headers.emplace_back();
  std::transform(text.begin(), text.end(), std::back_inserter(request_.headers.back().first), lower);
}

void RequestParser::add_to_value(std::string_view text) {
  in_value_ = true;
  request_.headers.back().second.append(text);
}

void RequestParser::end_head(std::string method, int minor_version, bool keep_alive, bool has_body) {
  complete_ = true;
  has_body_ = has_body;
  request_.method = std::move(method);
  request_.minor_version = minor_version;
  request_.keep_alive = keep_alive;
  for (auto& header : request_.headers) header.second = trimmed(header.second);
}

}  // namespace ringlet::web
