#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/alive_guard.hpp"
#include "core/ports/link.hpp"
#include "core/ports/peer_memory.hpp"
#include "transport/local/inbox.hpp"
#include "transport/local/mark.hpp"
#include "transport/local/neighbours.hpp"
#include "transport/local/outbox.hpp"

namespace ringlet::local {

/// What is best depends on the inner link.
struct PeerMemoryTuning {
  /// Shorter parts go over the inner link, because moving them twice costs less than waiting for an answer.
  std::size_t pull_bytes = 64 << 10;
  /// Which batches are lent where each process has a processor of its own, and where they share processors; there, also of those that are
  /// for the caches (LinkUser::sends_for_caches()). All others go over the inner link, too.
  LentBatch on_own_processors{}, on_shared_processors{}, for_caches_on_shared_processors{};
  /// If at least this many bytes of a data record are missing, they are received directly into the user's memory.
  std::size_t direct_bytes = 4 << 10;
  /// How many bytes at least are received along with what has a place: as many as there are, if each call costs much.
  std::size_t buffer_bytes = 64 << 10;
};
inline constexpr PeerMemoryTuning kOverSockets{};
/// Receiving from a ring costs nothing but the copy, and copying twice in the caches is faster than one copy for which the system looks up
/// each page and both sides wait for each other. In long batches the second copy costs more; what is in no cache goes through the ring
/// faster again, as long as both sides run at the same time. Where they do not, what is reduced soon is in the caches still when it has
/// come through a ring, and not when a long batch was read as one.
inline constexpr PeerMemoryTuning kOverRings{.pull_bytes = 128 << 10,
                                             .on_own_processors = {.from = 256 << 10, .below = 12 << 20},
                                             .on_shared_processors = {.from = 1 << 20},
                                             .for_caches_on_shared_processors = {.from = SIZE_MAX},
                                             .direct_bytes = 1,
                                             .buffer_bytes = 64};
/// The size of a batch of lent parts. Each batch makes both sides wait for each other once; on a busy machine that wait lasts until the
/// other process gets a processor.
inline constexpr std::size_t kLentBatchBytes = 16 << 20;

/// A link between two processes of one machine. The inner link carries short parts themselves and, of long parts, their addresses: the
/// receiver reads those directly from the sender's memory into their destination, and sends an answer. Both ends must have one.
///
/// It differs from other links in two ways. It can be started only once. And while its user has no room to receive, it does not process the
/// peer's answers, so that sending stops after the batch under way. If the peer's memory cannot be read, or was recalled before it was
/// read, the link continues like an ordinary link and loses nothing.
class PeerMemoryLink final : public Link, private LinkUser {
 public:
  /// `memory` outlives the link. `mark` is this side's mark, which the peer knows; `peer` is the peer's mark. Without `neighbours`,
  /// processes share processors.
  PeerMemoryLink(std::unique_ptr<Link> inner, PeerMemory& memory, std::unique_ptr<Mark> mark, const PeerMark& peer,
                 const PeerMemoryTuning& tuning = kOverSockets, std::shared_ptr<Neighbours> neighbours = nullptr);
  ~PeerMemoryLink() override;
  PeerMemoryLink(const PeerMemoryLink&) = delete;
  PeerMemoryLink& operator=(const PeerMemoryLink&) = delete;

  void start(LinkUser& user) override;
  void wake() override;
  void finish_sending() override;
  std::size_t recall() override;
  std::size_t wanted_batch_bytes() const override { return kLentBatchBytes; }
  std::string peer_name() const override { return peer_name_; }
  std::string own_name() const override { return inner_ ? inner_->own_name() : std::string(); }
  std::string_view medium() const override { return "memory"; }

 private:
  /// The record that is being received, and how many of its bytes are still missing.
  struct Incoming {
    Record record{};
    std::size_t left = 0;
  };

  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  // All of these return false if this object was destroyed or has failed. parse() and the functions that it calls also return false if the
  // user has no room or sending goes first.
  bool ask_user();
  const LentBatch& limits_of_batch() const;
  void end_if_both_have();
  bool resume();
  bool parse();
  bool on_record(const Record& record);
  bool on_answer(std::optional<std::size_t> left);
  bool on_end();
  bool take_data();
  bool take_pulled();
  bool answer(RecordKind kind);
  std::size_t ask_for_room(std::size_t max_bytes);
  /// Reading the peer's memory takes long, and the peer may have nothing to do until it hears what this side has to send.
  bool sending_goes_first() const;
  bool break_protocol(const char* what);
  void fail(const Status& status);
  void end_lending();

  std::unique_ptr<Link> inner_;
  PeerMemory& memory_;
  std::unique_ptr<Mark> mark_;
  const PeerMark peer_;
  const std::string peer_name_;
  LinkUser* user_ = nullptr;  // null before start() and after the last call
  AliveGuard guard_;          // ended on destruction and on failure

  const std::size_t direct_bytes_;
  const LentBatch on_own_processors_, on_shared_processors_, for_caches_on_shared_processors_;
  std::optional<Neighbours::Place> place_;

  // sending
  Outbox outbox_;
  bool woken_ = false;  // since the user was asked last
  bool finish_requested_ = false;
  bool end_sent_ = false;

  // receiving
  Inbox inbox_;
  Incoming incoming_{};
  std::uint64_t position_ = 0;     // of the peer's stream: the user has all bytes before it
  std::uint64_t sent_bytes_ = 0;   // over the inner link
  std::uint64_t answered_at_ = 0;  // sent_bytes_ when the last answer has left
  int unsent_answers_ = 0;         // put since all before them had left
  bool answered_ = false;          // the peer has answered since the user was last asked for more to send
  bool stopped_ = false;           // receiving has stopped: the user had no room, or sending goes first
  bool inner_stopped_ = false;     // the inner link was given no room because of that
  bool skipping_ = false;
  bool peer_ended_ = false;
  bool inner_ended_ = false;
};

}  // namespace ringlet::local
