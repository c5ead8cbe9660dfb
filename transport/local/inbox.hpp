#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/ports/peer_memory.hpp"
#include "transport/local/mark.hpp"
#include "transport/local/record.hpp"

namespace ringlet::local {

/// The receiving half of a PeerMemoryLink: the bytes of the inner link that have not been taken yet, and the user's room for what is next.
class Inbox {
 public:
  Inbox();

  /// Uses of the user's room `max_bytes` at most; returns how many bytes it has.
  std::size_t set_room(std::span<const Bytes> parts, std::size_t max_bytes);
  void clear_room();
  /// Where the inner link is to put its next bytes: into the room, and behind it, if wanted, into the buffer.
  std::span<const Bytes> offer(bool with_buffer);
  /// The inner link has put so many bytes there; returns how many of them the user has got.
  std::size_t added(std::size_t bytes);

  /// Whether the buffer is.
  bool empty() const { return begin_ == end_; }
  std::size_t unread_bytes() const { return end_ - begin_; }
  /// Takes bytes of the buffer; copy_to_room() as many as the room has.
  ///@{
  void skip(std::size_t bytes) { begin_ += bytes; }
  void copy_to_room();
  ///@}
  /// Takes the next record out of the buffer. False: it breaks the protocol. Nothing in `record`: it has not come whole.
  bool take_record(std::optional<Record>& record);
  /// Reads the peer's memory into the room, at the address of a record. Whether it was lent, by that record, until all of it was read.
  bool read_peer(PeerMemory& memory, const PeerMark& peer, const Record& record) const;

 private:
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  std::array<Bytes, 3> room_{};      // the user's, and perhaps one part of the buffer
  std::size_t room_parts_ = 0;
  std::size_t room_bytes_ = 0;
  std::size_t offered_bytes_ = 0;  // of the room to the inner link
};

}  // namespace ringlet::local
