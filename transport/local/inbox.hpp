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

/// The receiving half of a PeerMemoryLink: the bytes of the inner link that have not been parsed yet, and the memory ("room") that the user
/// has given for the next bytes of the stream.
class Inbox {
 public:
  /// The buffer holds one record at least.
  explicit Inbox(std::size_t buffer_bytes);

  /// Sets the room to at most `max_bytes` of `parts`, and returns how many bytes the room has.
  std::size_t set_room(std::span<const Bytes> parts, std::size_t max_bytes);
  void clear_room();
  /// Returns the memory into which the inner link must put its next bytes: the room, followed by the buffer if `with_buffer` is true.
  std::span<const Bytes> offer(bool with_buffer);
  /// Records that the inner link has written `bytes` bytes there, and returns how many of them went into the room.
  std::size_t added(std::size_t bytes);

  /// Whether the buffer holds no unread bytes.
  bool empty() const { return begin_ == end_; }
  std::size_t unread_bytes() const { return end_ - begin_; }
  /// Both remove bytes from the buffer; copy_to_room() removes as many as the room has.
  ///@{
  void skip(std::size_t bytes) { begin_ += bytes; }
  void copy_to_room();
  ///@}
  /// Takes the next record out of the buffer. Returns false if the record breaks the protocol, and leaves `record` empty if it has not
  /// arrived completely.
  bool take_record(std::optional<Record>& record);
  /// Reads the peer's memory at the record's address into the room. Returns whether the memory was still lent under that record when all of
  /// it had been read.
  bool read_peer(PeerMemory& memory, const PeerMark& peer, const Record& record) const;

 private:
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  std::array<Bytes, 3> room_{};      // the user's, and one part of the buffer if offer() adds it
  std::size_t room_parts_ = 0;
  std::size_t room_bytes_ = 0;
  std::size_t offered_bytes_ = 0;  // how many bytes of the room the inner link was offered
};

}  // namespace ringlet::local
