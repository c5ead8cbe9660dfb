#include "transport/web/http_answer.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/address.hpp"

namespace ringlet::web {

namespace {

// The page may run its own scripts and WebAssembly and open WebSockets to any rank of the network, and nothing else.
constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; manifest-src 'self'; connect-src 'self' ws:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The reason phrases of all status codes that are used here.
constexpr std::array<std::pair<int, std::string_view>, 11> kReasons{{
    {101, "Switching Protocols"},
    {200, "OK"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {kOriginRefused, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {413, "Payload Too Large"},
    {426, "Upgrade Required"},
    {431, "Request Header Fields Too Large"},
    {505, "HTTP Version Not Supported"},
}};

std::string_view reason_of(int status) {
  const auto* const found = std::find_if(kReasons.begin(), kReasons.end(), [&](const auto& reason) { return reason.first == status; });
  return found == kReasons.end() ? "Unknown" : found->second;
}

class HeadWriter {
 public:
  explicit HeadWriter(int status) {
    head_.append("HTTP/1.1 ").append(std::to_string(status)).append(" ").append(reason_of(status)).append("\r\n");
  }
  HeadWriter& add(std::string_view name, std::string_view value) {
    head_.append(name).append(": ").append(value).append("\r\n");
    return *this;
  }
  std::string finish() { return std::move(head_.append("\r\n")); }

 private:
  std::string head_;
};

HeadWriter begin_head(int status, bool keep_alive) {
  HeadWriter head(status);
  head.add("X-Content-Type-Options", "nosniff").add("Referrer-Policy", "no-referrer");
  if (!keep_alive) head.add("Connection", "close");
  return head;
}

Answer refuse(int status, bool keep_alive, std::string_view extra_name = {}, std::string_view extra_value = {}) {
  HeadWriter head = begin_head(status, keep_alive);
  head.add("Content-Length", "0").add("Cache-Control", "no-store");
  if (!extra_name.empty()) head.add(extra_name, extra_value);
  return {status, head.finish(), {}, keep_alive, false};
}

Answer refuse_version() {
  HeadWriter head = begin_head(426, false);
  head.add("Content-Length", "0").add("Cache-Control", "no-store").add("Upgrade", "websocket").add("Sec-WebSocket-Version", "13");
  return {426, head.finish(), {}, false, false};
}

Answer serve(const HttpRequest& request, const PageFile& file) {
  const bool zipped = !file.gzip.empty() && request.lists("accept-encoding", "gzip");
  const ConstBytes body = zipped ? file.gzip : file.plain;
  const std::string tag = '"' + file.tag + (zipped ? "-gzip\"" : "\"");
  const bool unchanged = request.lists("if-none-match", tag) || request.lists("if-none-match", "W/" + tag);
  const int status = unchanged ? 304 : 200;
  HeadWriter head = begin_head(status, request.keep_alive);
  // The same port may serve another version later, so a browser keeps the file but asks each time whether it has changed.
  head.add("ETag", tag).add("Cache-Control", "no-cache").add("Vary", "Accept-Encoding");
  if (!unchanged) {
    head.add("Content-Type", file.content_type).add("Content-Length", std::to_string(body.size()));
    if (zipped) head.add("Content-Encoding", "gzip");
    head.add("Content-Security-Policy", kPagePolicy).add("Cross-Origin-Resource-Policy", "same-origin");
  }
  const bool with_body = !unchanged && request.method == "GET";
  return {status, head.finish(), with_body ? body : ConstBytes{}, request.keep_alive, false};
}

/// The name or address of "name", "name:80" or "[fe80::1]:80", in lower case.
std::string host_name(std::string_view host) {
  const bool bracketed = !host.empty() && host.front() == '[';
  host = bracketed ? host.substr(1, host.find(']') - 1) : host.substr(0, host.find(':'));
  std::string name(host);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name;
}

bool is_numeric(const std::string& name) {
  return !name.empty() && (name.find(':') != std::string::npos || name.find_first_not_of("0123456789.") == std::string::npos);
}

bool page_host_is_allowed(std::string_view host, bool is_dialled, const UpgradeRules& rules) {
  if (!rules.page_hosts) return true;
  const std::string name = host_name(host);
  return is_loopback({name, 0}) || (is_dialled && is_numeric(name)) ||
         std::find(rules.page_hosts->begin(), rules.page_hosts->end(), name) != rules.page_hosts->end();
}

/// Browsers always send the origin of the page that asks. A request without an origin comes from another program, which only the token can
/// keep out.
bool origin_is_allowed(const HttpRequest& request, const UpgradeRules& rules) {
  const std::string* origin = request.find("origin");
  if (origin == nullptr) return true;
  if (std::find(rules.allowed_origins.begin(), rules.allowed_origins.end(), *origin) != rules.allowed_origins.end()) return true;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin->rfind(scheme, 0) != 0) continue;
    const std::string_view host = std::string_view(*origin).substr(scheme.size());
    const bool is_dialled = host == *request.find("host");
    const bool at_page_port =
        rules.page_port && host.substr(std::min(host.rfind(':'), host.size())) == ":" + std::to_string(*rules.page_port);
    if ((is_dialled || at_page_port) && page_host_is_allowed(host, is_dialled, rules)) return true;
  }
  return false;
}

bool is_key(std::string_view key) {
  constexpr std::size_t kKeySize = 24;  // of 16 bytes in base64
  constexpr int kDecodedSize = 18;      // including two bytes for the padding
  std::array<unsigned char, kDecodedSize> decoded{};
  return key.size() == kKeySize && key.substr(kKeySize - 2) == "==" &&
         EVP_DecodeBlock(decoded.data(), reinterpret_cast<const unsigned char*>(key.data()), kKeySize) == kDecodedSize;
}

Answer upgrade(const HttpRequest& request, const UpgradeRules& rules) {
  if (request.method != "GET") return refuse(405, false, "Allow", "GET");
  if (request.minor_version == 0 || !request.lists("connection", "upgrade") || !request.lists("upgrade", "websocket"))
    return refuse_version();
  const std::string* version = request.find("sec-websocket-version");
  if (request.count("sec-websocket-version") != 1 || *version != "13") return refuse_version();
  const std::string* key = request.find("sec-websocket-key");
  if (request.count("sec-websocket-key") != 1 || !is_key(*key)) return refuse(400, false);
  if (request.count("origin") > 1) return refuse(400, false);
  if (!origin_is_allowed(request, rules)) return refuse(kOriginRefused, false);
  HeadWriter head(101);
  head.add("Upgrade", "websocket").add("Connection", "Upgrade").add("Sec-WebSocket-Accept", accept_key(*key));
  return {101, head.finish(), {}, true, true};
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

/// Browsers encode what may not stand in a URL, and not all of them the same. As with them a % that begins no code means itself.
std::string percent_decoded(std::string_view path) {
  std::string decoded;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const auto high = path[at] == '%' && at + 2 < path.size() ? hex_digit(path[at + 1]) : std::nullopt;
    const auto low = high ? hex_digit(path[at + 2]) : std::nullopt;
    decoded += low ? static_cast<char>(*high << 4 | *low) : path[at];
    if (low) at += 2;
  }
  return decoded;
}

}  // namespace

Answer answer_request(const HttpRequest& request, const PageBundle& page, const UpgradeRules& rules) {
  if (request.count("host") > 1 || (request.minor_version > 0 && request.count("host") == 0)) return refuse(400, false);
  if (request.target.empty() || request.target.front() != '/') return refuse(400, false);
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  if (path == rules.path) return upgrade(request, rules);
  if (request.method != "GET" && request.method != "HEAD") return refuse(405, false, "Allow", "GET, HEAD");
  const PageFile* file = page.find(percent_decoded(path));
  return file != nullptr ? serve(request, *file) : refuse(404, request.keep_alive);
}

Answer refuse_request(int status) { return refuse(status, false); }

std::string accept_key(std::string_view key) {
  constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const std::string text = std::string(key).append(kGuid);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned digest_size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &digest_size, EVP_sha1(), nullptr);
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> encoded{};
  const int size = EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(digest_size));
  return {reinterpret_cast<const char*>(encoded.data()), static_cast<std::size_t>(size)};
}

}  // namespace ringlet::web
