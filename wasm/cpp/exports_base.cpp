#include <cstdlib>

#include "core/base/names_text.hpp"
#include "core/base/refuse.hpp"
#include "simd/kernels.hpp"
#include "wasm/cpp/browser_socket.hpp"
#include "wasm/cpp/exports.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;

namespace {

std::string name_or_unknown(std::optional<DType> dtype) { return dtype ? std::string(name_of(*dtype)) : "an unknown dtype"; }

}  // namespace

const char* ringlet_error_text() { return browser::last_failure().text().c_str(); }
int32_t ringlet_error_rank() { return browser::last_failure().rank(); }

void* ringlet_allocate(size_t bytes) { return std::malloc(bytes == 0 ? 1 : bytes); }
void ringlet_release(void* memory) { std::free(memory); }

int32_t ringlet_cast(int32_t to_dtype, void* out, int32_t from_dtype, const void* in, size_t count) {
  const auto to = from_number<DType>(to_dtype), from = from_number<DType>(from_dtype);
  const simd::CastFn cast = to && from ? simd::find("")->cast(*from, *to) : nullptr;
  if (cast == nullptr)
    return browser::report(invalid("cannot cast " + name_or_unknown(from) + " to " + name_or_unknown(to) + "; " +
                                   names_of_dtypes(is_real, "and") + " can be"));
  cast(static_cast<std::byte*>(out), static_cast<const std::byte*>(in), count);
  return browser::report({});
}

// These are called by imports.js.
RINGLET_EXPORT void ringlet_on_timer() { browser::loop().on_timer(); }
RINGLET_EXPORT void ringlet_on_turn() { browser::loop().on_turn(); }
RINGLET_EXPORT void ringlet_on_socket_opened(int32_t socket) { browser::BrowserSocket::on_opened(socket); }
RINGLET_EXPORT void ringlet_on_socket_message(int32_t socket, size_t bytes) { browser::BrowserSocket::on_message(socket, bytes); }
RINGLET_EXPORT void ringlet_on_socket_closed(int32_t socket, int32_t clean, int32_t code, const char* reason) {
  browser::BrowserSocket::on_closed(socket, clean != 0, code, reason);
}
