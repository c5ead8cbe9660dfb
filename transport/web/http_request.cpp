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

RequestParser::RequestParser(std::size_t max_bytes) : bytes_left_(max_bytes) {
  http_parser_init(&parser_, HTTP_REQUEST);
  parser_.data = this;
}

RequestParser::State RequestParser::feed(ConstBytes& input) {
  static const http_parser_settings settings = [] {
    http_parser_settings made;
    http_parser_settings_init(&made);
    made.on_url = on_url;
    made.on_header_field = on_header_field;
    made.on_header_value = on_header_value;
    made.on_headers_complete = on_headers_complete;
    made.on_message_complete = on_message_complete;
    return made;
  }();
  const std::size_t offered = std::min(input.size(), bytes_left_);
  const std::size_t used = http_parser_execute(&parser_, &settings, reinterpret_cast<const char*>(input.data()), offered);
  input = input.subspan(std::min(used, offered));
  bytes_left_ -= std::min(used, offered);
  const State state = judge();
  return state == State::incomplete && bytes_left_ == 0 ? State::too_long : state;
}

RequestParser::State RequestParser::judge() const {
  const auto error = HTTP_PARSER_ERRNO(&parser_);
  if (complete_) {
    if (parser_.http_major != 1 || parser_.http_minor > 1) return State::unknown_version;
    return has_body_ ? State::has_body : State::complete;
  }
  if (error == HPE_OK) return State::incomplete;
  if (error == HPE_INVALID_VERSION) return State::unknown_version;
  return error == HPE_HEADER_OVERFLOW ? State::too_long : State::malformed;
}

int RequestParser::on_url(http_parser* parser, const char* text, std::size_t size) {
  of(parser).request_.target.append(text, size);
  return 0;
}

int RequestParser::on_header_field(http_parser* parser, const char* text, std::size_t size) {
  auto& self = of(parser);
  if (std::exchange(self.in_value_, false)) self.request_.headers.emplace_back();
  auto& name = self.request_.headers.back().first;
  std::transform(text, text + size, std::back_inserter(name), lower);
  return 0;
}

int RequestParser::on_header_value(http_parser* parser, const char* text, std::size_t size) {
  auto& self = of(parser);
  self.in_value_ = true;
  self.request_.headers.back().second.append(text, size);
  return 0;
}

int RequestParser::on_headers_complete(http_parser* parser) {
  auto& self = of(parser);
  self.complete_ = true;
  self.has_body_ = (parser->flags & F_CHUNKED) != 0 || ((parser->flags & F_CONTENTLENGTH) != 0 && parser->content_length > 0);
  self.request_.method = http_method_str(static_cast<http_method>(parser->method));
  self.request_.minor_version = parser->http_minor;
  self.request_.keep_alive = http_should_keep_alive(parser) != 0;
  for (auto& header : self.request_.headers) header.second = trimmed(header.second);
  // A body is not read.
  return self.has_body_ ? -1 : 0;
}

int RequestParser::on_message_complete(http_parser* parser) {
  // The bytes that follow belong to the next request.
  http_parser_pause(parser, 1);
  return 0;
}

}  // namespace ringlet::web
