#pragma once

#include <cstddef>
#include <cstdint>

/// What imports.js implements. Each returns at once.
extern "C" {
double ringlet_now();                         // milliseconds
void ringlet_set_timer(double milliseconds);  // ringlet_on_timer() after that; one at a time
void ringlet_clear_timer();
void ringlet_turn_soon();  // ringlet_on_turn() once what JavaScript does now has ended

void ringlet_socket_open(int32_t socket, const char* url);
void ringlet_socket_send(int32_t socket, const std::byte* from, size_t bytes);  // copies
double ringlet_socket_buffered(int32_t socket);                                 // bytes sent that have not left
void ringlet_socket_take(int32_t socket, std::byte* to, size_t bytes);          // of what has come, in order
void ringlet_socket_finish(int32_t socket);
void ringlet_socket_close(int32_t socket);  // last; nothing is told of it any more

void ringlet_random(std::byte* out, size_t bytes);
void ringlet_sign(const char* key, size_t key_bytes, const std::byte* message, size_t message_bytes, std::byte* out);
// Keys have 32 bytes, nonces 12.
void ringlet_public_key(const std::byte* secret, std::byte* out);
int32_t ringlet_agree(const std::byte* secret, const std::byte* peer, std::byte* out);  // 0: the peer's key gives zero
// The content is in `place`, and its encryption and the tag take its place there.
void ringlet_seal(const std::byte* key, const std::byte* nonce, const std::byte* associated, size_t associated_bytes, std::byte* place,
                  size_t content_bytes);
// `out` has the content's bytes, and is where `sealed` is or apart; 0: the tag is wrong.
int32_t ringlet_open(const std::byte* key, const std::byte* nonce, const std::byte* associated, size_t associated_bytes,
                     const std::byte* sealed, size_t content_bytes, std::byte* out);

void ringlet_tell_completed(int32_t ticket, int32_t code, int32_t rank, int32_t value, const char* text);
void ringlet_tell_seat(int32_t world, int32_t rank, int32_t size, int32_t guests, int32_t present);
void ringlet_tell_failed(int32_t world, int32_t code, int32_t rank, const char* text);
}
