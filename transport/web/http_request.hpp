#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"

namespace ringlet::web {

/// The head of an HTTP/1 request. Header names are in lower case.
struct HttpRequest {
  std::string method;
  std::string target;
  int minor_version = 1;
  bool keep_alive = false;
  std::vector<std::pair<std::string, std::string>> headers;

  /// Returns the header's value, without the space around it; null if there is no such header.
  const std::string* find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  /// Whether the comma-separated list in a header of this name, of which there may be several, has the entry `token`, ignoring case.
  bool lists(std::string_view name, std::string_view token) const;
};

/// Reads the head of one request. A request with a body is refused, because nothing that is served needs one.
class RequestParser {
 public:
  enum class State { incomplete, complete, malformed, has_body, unknown_version, too_long };

  explicit RequestParser(std::size_t max_bytes);
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;
  ~RequestParser();

  /// Reads further from `input`, and removes the bytes that belong to this request.
  State feed(ConstBytes& input);
  /// May only be called when the head is complete.
  const HttpRequest& request() const { return request_; }

 private:
  // The parsing library is http-parser or its successor llhttp; each has a file of its own, request_parser_*.cpp.
  struct Library;

  /// Returns how many of the bytes belong to this request.
  std::size_t parse(ConstBytes bytes);
  State judge() const;
  void add_to_name(std::string_view text);
  void add_to_value(std::string_view text);
  void end_head(std::string method, int minor_version, bool keep_alive, bool has_body);

  std::unique_ptr<Library> library_;
  std::size_t bytes_left_;
  HttpRequest request_;
  bool in_value_ = true;
  bool has_body_ = false;
  bool complete_ = false;
};

}  // namespace ringlet::web
