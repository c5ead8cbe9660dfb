#include <ringlet/c/base.h>

#include <new>
#include <ringlet/error.hpp>
#include <string>

#include "bindings/c/guard.hpp"

namespace ringlet::c {

namespace {

constexpr bool same(Errc code, int number) { return static_cast<int>(code) == number; }
static_assert(same(Errc::ok, RINGLET_OK) && same(Errc::invalid_argument, RINGLET_INVALID_ARGUMENT) &&
              same(Errc::mismatch, RINGLET_MISMATCH) && same(Errc::peer_lost, RINGLET_PEER_LOST) &&
              same(Errc::timed_out, RINGLET_TIMED_OUT) && same(Errc::protocol_error, RINGLET_PROTOCOL_ERROR) &&
              same(Errc::cancelled, RINGLET_CANCELLED) && same(Errc::io_error, RINGLET_IO_ERROR));

struct LastError {
  std::string text;
  const char* message = "";  // the string of `text`, or a literal
  int32_t code = RINGLET_OK;
  int32_t rank = -1;
};

LastError& last_error() noexcept {
  thread_local LastError error;
  return error;
}

int32_t record(int32_t code, std::string text, int rank = -1) {
  LastError& error = last_error();
  error.text = std::move(text);
  error.message = error.text.c_str();
  error.code = code;
  error.rank = rank;
  return code;
}

int32_t record_literal(int32_t code, const char* message) noexcept {
  last_error().message = message;
  last_error().code = code;
  return code;
}

int32_t record_known_exception(const char* call) {
  try {
    throw;
  } catch (const BadArgument& error) {
    return record(RINGLET_INVALID_ARGUMENT, std::string(call) + ": " + error.what());
  } catch (const CallbackFailed& error) {
    return record(RINGLET_CALLBACK_FAILED, std::string(call) + ": " + error.what());
  } catch (const Error& error) {
    return record(static_cast<int32_t>(error.status().code()), error.status().text(), error.status().rank());
  } catch (const std::bad_alloc&) {
    return record_literal(RINGLET_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return record(RINGLET_INTERNAL_ERROR, std::string(call) + ": " + error.what());
  }
}

}  // namespace

void clear_error() noexcept {
  last_error().message = "";
  last_error().code = RINGLET_OK;
  last_error().rank = -1;
}

int32_t record_exception(const char* call) noexcept {
  try {
    return record_known_exception(call);
  } catch (const std::bad_alloc&) {
    return record_literal(RINGLET_OUT_OF_MEMORY, "out of memory");
  } catch (...) {
    return record_literal(RINGLET_INTERNAL_ERROR, "something was thrown that is no exception of this library's");
  }
}

void require_callback_success(const char* name, int32_t code) {
  if (code == 0) return;
  const std::string last = last_error().message;
  throw CallbackFailed(std::string(name) + " returned " + std::to_string(code) + (last.empty() ? "" : "; its last call said: " + last));
}

void rethrow_failure_of_callback(const char* name, int32_t code) {
  if (code == RINGLET_OUT_OF_MEMORY) throw std::bad_alloc();
  const bool is_error_of_library = code > RINGLET_OK && code <= RINGLET_IO_ERROR;
  if (!is_error_of_library) return require_callback_success(name, code);
  const bool is_known = last_error().code == code;
  const std::string text = is_known ? last_error().message : std::string(name) + " returned " + ringlet_code_name(code);
  throw_if_failed({static_cast<Errc>(code), text, is_known ? last_error().rank : -1});
}

}  // namespace ringlet::c

const char* ringlet_version(void) { return RINGLET_VERSION; }

const char* ringlet_error_message(void) { return ringlet::c::last_error().message; }
int32_t ringlet_error_rank(void) { return ringlet::c::last_error().rank; }

const char* ringlet_code_name(int32_t code) {
  switch (code) {
    case RINGLET_OUT_OF_MEMORY:
      return "out_of_memory";
    case RINGLET_INTERNAL_ERROR:
      return "internal_error";
    case RINGLET_CALLBACK_FAILED:
      return "callback_failed";
    default:
      // All of the C++ library's names are literals, so they end with a zero byte.
      return code >= 0 && code <= UINT8_MAX ? ringlet::name_of(static_cast<ringlet::Errc>(code)).data() : "unknown";
  }
}
