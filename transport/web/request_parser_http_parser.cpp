#include <http_parser.h>

#include <algorithm>

#include "transport/web/http_request.hpp"

namespace ringlet::web {

struct RequestParser::Library {
  static RequestParser& of(http_parser* parser) { return *static_cast<RequestParser*>(parser->data); }

  static int on_url(http_parser* parser, const char* text, std::size_t size) {
    of(parser).request_.target.append(text, size);
    return 0;
  }

  static int on_header_field(http_parser* parser, const char* text, std::size_t size) {
    of(parser).add_to_name({text, size});
    return 0;
  }

  static int on_header_value(http_parser* parser, const char* text, std::size_t size) {
    of(parser).add_to_value({text, size});
    return 0;
  }

  static int on_headers_complete(http_parser* parser) {
    const bool has_body = (parser->flags & F_CHUNKED) != 0 || ((parser->flags & F_CONTENTLENGTH) != 0 && parser->content_length > 0);
    of(parser).end_head(http_method_str(static_cast<http_method>(parser->method)), parser->http_minor, http_should_keep_alive(parser) != 0,
                        has_body);
    // A body is never read; the parser stops with an error if there is one.
    return has_body ? -1 : 0;
  }

  static int on_message_complete(http_parser* parser) {
    // The bytes that follow belong to the next request.
    http_parser_pause(parser, 1);
    return 0;
  }

  http_parser parser{};
};

RequestParser::RequestParser(std::size_t max_bytes) : library_(std::make_unique<Library>()), bytes_left_(max_bytes) {
  http_parser_init(&library_->parser, HTTP_REQUEST);
  library_->parser.data = this;
}

RequestParser::~RequestParser() = default;

std::size_t RequestParser::parse(ConstBytes bytes) {
  static const http_parser_settings settings = [] {
    http_parser_settings made;
    http_parser_settings_init(&made);
    made.on_url = Library::on_url;
    made.on_header_field = Library::on_header_field;
    made.on_header_value = Library::on_header_value;
    made.on_headers_complete = Library::on_headers_complete;
    made.on_message_complete = Library::on_message_complete;
    return made;
  }();
  return std::min(http_parser_execute(&library_->parser, &settings, reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                  bytes.size());
}

RequestParser::State RequestParser::judge() const {
  const http_parser& parser = library_->parser;
  if (complete_) {
    if (parser.http_major != 1 || parser.http_minor > 1) return State::unknown_version;
    return has_body_ ? State::has_body : State::complete;
  }
  switch (HTTP_PARSER_ERRNO(&parser)) {
    case HPE_OK:
      return State::incomplete;
    case HPE_INVALID_VERSION:
      return State::unknown_version;
    case HPE_HEADER_OVERFLOW:
      return State::too_long;
    default:
      return State::malformed;
  }
}

}  // namespace ringlet::web
