#pragma once

#include <cstddef>
#include <cstdint>

/// The functions that imports.js implements. None of them waits.
extern "C" {
double ringlet_now();                         // milliseconds
void ringlet_set_timer(double milliseconds);  // calls ringlet_on_timer() after that; one timer at a time
void ringlet_clear_timer();
void ringlet_turn_soon();  // calls ringlet_on_turn() once the current JavaScript task has ended

void ringlet_socket_open(int32_t socket, const char* url);
void ringlet_socket_send(int32_t socket, const std::byte* from, size_t bytes);  // copies the bytes
double ringlet_socket_buffered(int32_t socket);                                 // bytes that were sent and have not left yet
void ringlet_socket_take(int32_t socket, std::byte* to, size_t bytes);          // takes received bytes, in order
void ringlet_socket_finish(int32_t socket);
void ringlet_socket_close(int32_t socket);  // the last call for a socket; none of its events are reported any more

void ringlet_random(std::byte* out, size_t bytes);
void ringlet_sign(const char* key, size_t key_bytes, const std::byte* message, size_t message_bytes, std::byte* out);
// Keys have 32 bytes, nonces 12.
void ringlet_public_key(const std::byte* secret, std::byte* out);
int32_t ringlet_agree(const std::byte* secret, const std::byte* peer, std::byte* out);  // 0: the result is zero
// `place` holds the content, which is replaced by its encryption, followed by the tag.
void ringlet_seal(const std::byte* key, const std::byte* nonce, const std::byte* associated, size_t associated_bytes, std::byte* place,
                  size_t content_bytes);
// `out` takes `content_bytes` bytes, and either is the same memory as `sealed` or does not overlap it. Returns 0 if the tag is wrong.
int32_t ringlet_open(const std::byte* key, const std::byte* nonce, const std::byte* associated, size_t associated_bytes,
                     const std::byte* sealed, size_t content_bytes, std::byte* out);

void ringlet_tell_completed(int32_t ticket, int32_t code, int32_t rank, int32_t value, const char* text);
void ringlet_tell_seat(int32_t world, int32_t rank, int32_t size, int32_t guests, int32_t present);
void ringlet_tell_knocking(int32_t world);
void ringlet_tell_failed(int32_t world, int32_t code, int32_t rank, const char* text);
}
