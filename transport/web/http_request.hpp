#pragma once

#include <http_parser.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"

namespace ringlet::web {

/// The head of an HTTP/1 request. Names of headers are in lower case.
struct HttpRequest {
  std::string method;
  std::string target;
  int minor_version = 1;
  bool keep_alive = false;
  std::vector<std::pair<std::string, std::string>> headers;

  /// The header's value, without the space around it; null where there is none.
  const std::string* find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  /// Whether the comma-separated list in the header, or in one of several of that name, has the entry `token`, in any case of letters.
  bool lists(std::string_view name, std::string_view token) const;
};

/// Reads one request's head. A request with a body is refused, since nothing that is served takes one.
class RequestParser {
 public:
  enum class State { incomplete, complete, malformed, has_body, unknown_version, too_long };

  explicit RequestParser(std::size_t max_bytes);
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Reads on in `input`, and removes the bytes that belong to this request.
  State feed(ConstBytes& input);
  /// Only once the head is complete.
  const HttpRequest& request() const { return request_; }

 private:
  static RequestParser& of(http_parser* parser) { return *static_cast<RequestParser*>(parser->data); }
  static int on_url(http_parser* parser, const char* text, std::size_t size);
  static int on_header_field(http_parser* parser, const char* text, std::size_t size);
  static int on_header_value(http_parser* parser, const char* text, std::size_t size);
  static int on_headers_complete(http_parser* parser);
  static int on_message_complete(http_parser* parser);
  State judge() const;

  http_parser parser_{};
  std::size_t bytes_left_;
  HttpRequest request_;
  bool in_value_ = true;
  bool has_body_ = false;
  bool complete_ = false;
};

}  // namespace ringlet::web
