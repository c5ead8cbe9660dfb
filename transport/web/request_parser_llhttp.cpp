#include <llhttp.h>

#include "transport/web/http_request.hpp"

namespace ringlet::web {

struct RequestParser::Library {
  static RequestParser& of(llhttp_t* parser) { return *static_cast<RequestParser*>(parser->data); }

  static int on_url(llhttp_t* parser, const char* text, std::size_t size) {
    of(parser).request_.target.append(text, size);
    return 0;
  }

  static int on_header_field(llhttp_t* parser, const char* text, std::size_t size) {
    of(parser).add_to_name({text, size});
    return 0;
  }

  static int on_header_value(llhttp_t* parser, const char* text, std::size_t size) {
    of(parser).add_to_value({text, size});
    return 0;
  }

  static int on_headers_complete(llhttp_t* parser) {
    const bool has_body = (parser->flags & F_CHUNKED) != 0 || ((parser->flags & F_CONTENT_LENGTH) != 0 && parser->content_length > 0);
    of(parser).end_head(llhttp_method_name(static_cast<llhttp_method_t>(parser->method)), parser->http_minor,
                        llhttp_should_keep_alive(parser) != 0, has_body);
    // A body is never read; the parser stops with an error if there is one.
    return has_body ? -1 : 0;
  }

  // The bytes that follow belong to the next request.
  static int on_message_complete(llhttp_t*) { return HPE_PAUSED; }

  llhttp_t parser{};
};

RequestParser::RequestParser(std::size_t max_bytes) : library_(std::make_unique<Library>()), bytes_left_(max_bytes) {
  static const llhttp_settings_t settings = [] {
    llhttp_settings_t made;
    llhttp_settings_init(&made);
    made.on_url = Library::on_url;
    made.on_header_field = Library::on_header_field;
    made.on_header_value = Library::on_header_value;
    made.on_headers_complete = Library::on_headers_complete;
    made.on_message_complete = Library::on_message_complete;
    return made;
  }();
  llhttp_init(&library_->parser, HTTP_REQUEST, &settings);
  library_->parser.data = this;
}

RequestParser::~RequestParser() = default;

std::size_t RequestParser::parse(ConstBytes bytes) {
  const char* text = reinterpret_cast<const char*>(bytes.data());
  if (llhttp_execute(&library_->parser, text, bytes.size()) == HPE_OK) return bytes.size();
  return static_cast<std::size_t>(llhttp_get_error_pos(&library_->parser) - text);
}

RequestParser::State RequestParser::judge() const {
  const llhttp_t& parser = library_->parser;
  if (complete_) {
    if (parser.http_major != 1 || parser.http_minor > 1) return State::unknown_version;
    return has_body_ ? State::has_body : State::complete;
  }
  switch (llhttp_get_errno(&parser)) {
    case HPE_OK:
      return State::incomplete;
    case HPE_INVALID_VERSION:
      return State::unknown_version;
    default:
      return State::malformed;
  }
}

}  // namespace ringlet::web
