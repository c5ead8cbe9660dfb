#include <cstdlib>

#include "simd/kernels.hpp"
#include "wasm/cpp/browser_socket.hpp"
#include "wasm/cpp/exports.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;

const char* ringlet_error_text() { return browser::last_failure().text().c_str(); }
int32_t ringlet_error_rank() { return browser::last_failure().rank(); }

void* ringlet_allocate(size_t bytes) { return std::malloc(bytes == 0 ? 1 : bytes); }
void ringlet_release(void* memory) { std::free(memory); }

int32_t ringlet_cast(int32_t to_dtype, void* out, int32_t from_dtype, const void* in, size_t count) {
  const auto to = static_cast<DType>(to_dtype), from = static_cast<DType>(from_dtype);
  const simd::CastFn cast = is_valid(to) && is_valid(from) ? simd::find("")->cast(from, to) : nullptr;
  if (cast == nullptr)
    return browser::report({Errc::invalid_argument, "cannot cast " + std::string(name_of(from)) + " to " + std::string(name_of(to)) +
                                                        "; f16, bf16, f32 and f64 can be"});
  cast(static_cast<std::byte*>(out), static_cast<const std::byte*>(in), count);
  return browser::report({});
}

// What imports.js calls.
RINGLET_EXPORT void ringlet_on_timer() { browser::loop().on_timer(); }
RINGLET_EXPORT void ringlet_on_turn() { browser::loop().on_turn(); }
RINGLET_EXPORT void ringlet_on_socket_opened(int32_t socket) { browser::BrowserSocket::on_opened(socket); }
RINGLET_EXPORT void ringlet_on_socket_message(int32_t socket, size_t bytes) { browser::BrowserSocket::on_message(socket, bytes); }
RINGLET_EXPORT void ringlet_on_socket_closed(int32_t socket, int32_t clean, int32_t code, const char* reason) {
  browser::BrowserSocket::on_closed(socket, clean != 0, code, reason);
}
