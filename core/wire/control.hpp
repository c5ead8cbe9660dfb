#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/status.hpp>
#include <string>
#include <variant>
#include <vector>

#include "core/base/bytes.hpp"

// These structs hold the messages that proto/control.proto defines.
namespace ringlet::wire {

struct Endpoint {
  enum class Kind : std::uint8_t { unknown = 0, wired = 1, wireless = 2 };
  std::string host;
  std::uint32_t port = 0;
  std::string interface{};
  Kind kind = Kind::unknown;
  std::uint32_t speed_mbps = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

struct Path {
  std::string dialler_interface, acceptor_interface;
  Endpoint::Kind kind = Endpoint::Kind::unknown;
  std::uint32_t speed_mbps = 0;
  std::uint64_t round_trip_ns = 0, byte_ps = 0;
  std::uint32_t tried = 0;
  friend bool operator==(const Path&, const Path&) = default;
};

struct RankSettings {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t guests = 0;
  std::uint32_t policy = 0;
  bool elastic = false;
  std::uint32_t order = 0;
  std::uint32_t parts = 0;
  friend bool operator==(const RankSettings&, const RankSettings&) = default;
};

/// The most ranks of a world that a newcomer believes in.
inline constexpr std::uint32_t kMaxRanks = 1 << 20;
/// The most addresses that a rank may send of itself.
inline constexpr std::size_t kMaxEndpoints = 8;

struct Join {
  RankSettings settings{};
  std::string host{};
  std::uint32_t port = 0;
  std::vector<Endpoint> endpoints{};
  friend bool operator==(const Join&, const Join&) = default;
};

struct SeatRequest {
  std::string name{};
  friend bool operator==(const SeatRequest&, const SeatRequest&) = default;
};

struct Connect {
  RankSettings settings{};
  std::uint64_t world_id = 0;
  std::string name{};
  friend bool operator==(const Connect&, const Connect&) = default;
};

struct Propose {
  RankSettings settings{};
  std::uint64_t world_id = 0;
  std::uint32_t to = 0;
  friend bool operator==(const Propose&, const Propose&) = default;
};

struct Nominate {
  Path path{};
  friend bool operator==(const Nominate&, const Nominate&) = default;
};

struct Member {
  std::uint32_t rank = 0;
  std::string host;
  std::uint32_t port = 0;
  std::string name{};
  std::vector<Endpoint> endpoints{};
  friend bool operator==(const Member&, const Member&) = default;
};

struct Roster {
  std::uint64_t world_id = 0;
  std::vector<Member> members;
  friend bool operator==(const Roster&, const Roster&) = default;
};

struct Welcome {
  std::uint32_t rank = 0;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Seat {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t guests = 0;
  std::uint32_t present = 0;
  std::uint32_t heartbeat_timeout_ms = 0;
  std::uint32_t wait_ms = 0;
  friend bool operator==(const Seat&, const Seat&) = default;
};

struct LinkProbe {
  std::uint32_t number = 0;
  bool answer = false;
  std::string padding{};
  friend bool operator==(const LinkProbe&, const LinkProbe&) = default;
};

/// The measured costs of links; 0 means not measured.
struct LinkCosts {
  std::uint64_t native_latency_ns = 0, native_byte_ps = 0;
  std::uint64_t guest_latency_ns = 0, guest_byte_ps = 0;
  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

struct Unmet {
  std::vector<std::uint32_t> ranks;
  friend bool operator==(const Unmet&, const Unmet&) = default;
};

struct Ready {
  LinkCosts measured{};
  Endpoint door{};
  std::uint32_t machine = 0;
  std::uint64_t next_byte_ps = 0, second_byte_ps = 0;
  friend bool operator==(const Ready&, const Ready&) = default;
};

struct Begin {
  std::uint32_t policy = 0;
  LinkCosts costs{};
  std::uint64_t exchange_bytes = 0, direct_bytes = 0;
  std::vector<Endpoint> doors{};
  std::uint32_t order = 0;
  std::uint32_t parts = 0;
  std::vector<std::uint32_t> machines{};
  std::vector<std::uint32_t> speeds{};
  std::uint64_t job = 0;
  friend bool operator==(const Begin&, const Begin&) = default;
};

struct Abort {
  std::uint32_t code = 0;
  std::int32_t rank = -1;
  std::string text;
  friend bool operator==(const Abort&, const Abort&) = default;
};

struct OperationState {
  std::string call;
  std::uint64_t number = 0;
  std::uint32_t stream = 0;
  std::string group;
  std::uint64_t milliseconds = 0;
  std::uint64_t received = 0, to_receive = 0, sent = 0, to_send = 0;
  std::vector<std::uint32_t> waits_for;
  friend bool operator==(const OperationState&, const OperationState&) = default;
};

struct StateQuestion {
  std::uint32_t number = 0;
  bool about_stream = false;
  std::uint32_t group = 0;
  std::uint32_t stream = 0;
  bool about_clock = false;
  friend bool operator==(const StateQuestion&, const StateQuestion&) = default;
};

struct RankState {
  std::uint32_t number = 0;
  std::uint64_t called = 0, ended = 0;
  std::vector<OperationState> running;
  OperationState last{};
  std::uint64_t operations = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  std::string host, program;
  std::uint32_t pid = 0;
  std::string links;
  bool stalled = false;
  std::string cipher;
  std::uint64_t clock_ns = 0;
  std::string parts{};
  friend bool operator==(const RankState&, const RankState&) = default;
};

struct Revoke {
  std::uint32_t epoch = 0;
  std::uint32_t code = 0;
  std::int32_t rank = -1;
  std::string text{};
  friend bool operator==(const Revoke&, const Revoke&) = default;
};

struct Query {
  std::uint32_t epoch = 0;
  std::uint64_t ballot = 0;
  friend bool operator==(const Query&, const Query&) = default;
};

struct Report {
  std::uint32_t epoch = 0;
  std::uint64_t ballot = 0, promised = 0, accepted_ballot = 0;
  std::vector<std::uint32_t> accepted{};
  std::uint64_t accepted_lineage = 0;
  std::vector<std::uint32_t> hears{}, dead{};
  friend bool operator==(const Report&, const Report&) = default;
};

struct Proposal {
  std::uint32_t epoch = 0;
  std::uint64_t ballot = 0;
  std::vector<std::uint32_t> members{};
  std::uint64_t lineage = 0;
  friend bool operator==(const Proposal&, const Proposal&) = default;
};

struct Acceptance {
  std::uint32_t epoch = 0;
  std::uint64_t ballot = 0;
  friend bool operator==(const Acceptance&, const Acceptance&) = default;
};

struct Decision {
  std::uint32_t epoch = 0;
  std::vector<std::uint32_t> members{};
  std::uint64_t lineage = 0;
  friend bool operator==(const Decision&, const Decision&) = default;
};

struct Unheard {
  std::uint32_t epoch = 0;
  friend bool operator==(const Unheard&, const Unheard&) = default;
};

struct Knock {
  std::string name{};
  friend bool operator==(const Knock&, const Knock&) = default;
};

struct Ticket {
  std::uint32_t rank = 0, world_size = 0;
  std::string host{};
  std::uint32_t port = 0;
  std::uint32_t epoch = 0;
  std::uint64_t lineage = 0;
  std::uint32_t policy = 0;
  std::uint32_t heartbeat_timeout_ms = 0;
  std::uint32_t wait_ms = 0;
  std::uint32_t guests = 0;
  std::uint32_t page_port = 0;
  std::uint32_t members = 0;
  std::uint32_t order = 0;
  std::uint32_t parts = 0;
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

struct LinkRates {
  std::vector<std::uint32_t> byte_ps{};
  friend bool operator==(const LinkRates&, const LinkRates&) = default;
};

struct PartsQuestion {
  std::uint32_t number = 0;
  friend bool operator==(const PartsQuestion&, const PartsQuestion&) = default;
};

struct GroupNumbers {
  std::uint64_t key = 0;
  std::vector<std::uint64_t> numbers{};
  friend bool operator==(const GroupNumbers&, const GroupNumbers&) = default;
};

/// The most groups, and numbers of them all together, that one of the next two messages has: a fourth of a control frame.
inline constexpr std::size_t kMostToldGroups = 1'024, kMostToldNumbers = 32'768;

struct PartsAnswer {
  std::uint32_t number = 0;
  std::vector<GroupNumbers> unstarted{};
  bool refuses = false;
  friend bool operator==(const PartsAnswer&, const PartsAnswer&) = default;
};

struct PartsChange {
  std::uint32_t number = 0;
  std::vector<std::uint32_t> speeds{};
  std::vector<GroupNumbers> first{};
  friend bool operator==(const PartsChange&, const PartsChange&) = default;
};

/// The messages are in the order of their tags.
using ControlMessage = std::variant<Join, Roster, Welcome, Ready, Begin, Abort, Seat, LinkProbe, StateQuestion, RankState, SeatRequest,
                                    Connect, Propose, Nominate, Unmet, Revoke, Query, Report, Proposal, Acceptance, Decision, Knock, Ticket,
                                    LinkRates, PartsQuestion, PartsAnswer, PartsChange, Unheard>;

/// Whether it is one of the messages by which ranks agree on the next epoch.
bool is_of_agreement(const ControlMessage& message);

std::string encode_control(const ControlMessage& message);
/// Returns nothing if the bytes are not such a message or are a kind of message that this version does not know.
std::optional<ControlMessage> decode_control(ConstBytes bytes);

Abort to_abort(const Status& status);
/// The status that a peer reports. A code out of range becomes `protocol_error`; a text that is too long is cut.
Status to_status(const Abort& abort);

}  // namespace ringlet::wire
