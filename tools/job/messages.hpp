#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/bytes.hpp"

// proto/job.proto is the definition; these are its messages as values.
namespace ringlet::job {

/// Two that speak different protocols do nothing together but tell each other.
inline constexpr std::uint32_t kProtocol = 4;
inline constexpr std::size_t kMaxArguments = 1 << 18;
inline constexpr std::size_t kMaxVariables = 1 << 14;
inline constexpr std::size_t kMaxRanksPerMachine = 224;
inline constexpr std::uint32_t kMaxWorldSize = 1'024;
inline constexpr std::uint32_t kMaxSignal = 64;
/// How much output of one machine's stdouts, and of its stderrs, may be under way.
inline constexpr std::size_t kOutputWindowBytes = 256 * 1024;
/// The largest piece of standard input that is sent at once.
inline constexpr std::size_t kMaxInputBytes = 64 * 1024;
inline constexpr std::size_t kMaxTracePieceBytes = 256 * 1024;
inline constexpr std::size_t kMaxEchoBytes = 256 * 1024;
inline constexpr std::size_t kMaxSurveyed = 32;  // machines
inline constexpr std::size_t kMachineKeyBytes = 32, kMachineSignatureBytes = 64;

struct Hail {
  std::uint32_t protocol = 0;
  std::string version, group, from, program, directory;
  std::string public_key{}, signature{};
  friend bool operator==(const Hail&, const Hail&) = default;
};

struct Offer {
  std::uint32_t protocol = 0;
  std::string version, name;
  std::uint32_t free_ranks = 0;
  std::string refusal;
  std::uint32_t refusal_code = 0;
  std::string launcher_address{}, own_address{};
  std::string public_key{}, signature{};
  friend bool operator==(const Offer&, const Offer&) = default;
};

struct BindPort {
  std::string host;
  std::uint32_t port = 0;
  std::uint32_t last_port = 0;
  friend bool operator==(const BindPort&, const BindPort&) = default;
};

struct PortBound {
  std::uint32_t port = 0;
  friend bool operator==(const PortBound&, const PortBound&) = default;
};

struct Variable {
  std::string name, value;
  friend bool operator==(const Variable&, const Variable&) = default;
};

struct StartRanks {
  std::uint64_t job = 0;
  std::uint32_t first_rank = 0, ranks = 0, world_size = 0;
  std::string coordinator, token, program;
  std::vector<std::string> arguments{};
  std::vector<Variable> environment{};
  std::string directory{};
  std::uint32_t grace_ms = 0, terminal_columns = 0;
  std::string preferred_directory{};
  bool has_input = false;
  std::uint32_t input_rank = 0;
  bool elastic = false, waits = false;
  bool trace = false;
  friend bool operator==(const StartRanks&, const StartRanks&) = default;
};

struct RanksStarted {
  std::vector<std::uint32_t> pids;
  friend bool operator==(const RanksStarted&, const RanksStarted&) = default;
};

struct Failed {
  std::uint32_t exit_code = 0;
  std::string text;
  friend bool operator==(const Failed&, const Failed&) = default;
};

struct Output {
  std::uint32_t rank = 0;
  bool error = false;
  std::string data;
  friend bool operator==(const Output&, const Output&) = default;
};

struct Credit {
  std::uint32_t bytes = 0;
  bool error = false;
  friend bool operator==(const Credit&, const Credit&) = default;
};

struct Exit {
  std::uint32_t rank = 0, code = 0, signal = 0;
  bool stopped = false;
  std::uint32_t exec_error = 0, follows = 0;
  friend bool operator==(const Exit&, const Exit&) = default;
};

struct Order {
  std::uint32_t signal = 0;
  bool stop = false;
  std::uint32_t grace_ms = 0;
  std::vector<std::uint32_t> ranks{};
  friend bool operator==(const Order&, const Order&) = default;
};

struct Over {
  friend bool operator==(const Over&, const Over&) = default;
};

struct Beat {
  friend bool operator==(const Beat&, const Beat&) = default;
};

struct EchoRequest {
  std::uint32_t number = 0;
  std::string padding;
  std::uint32_t answer_bytes = 0;
  friend bool operator==(const EchoRequest&, const EchoRequest&) = default;
};

struct Echo {
  std::uint32_t number = 0;
  std::uint64_t unix_ms = 0;
  std::string padding;
  std::uint32_t rank_port = 0;
  friend bool operator==(const Echo&, const Echo&) = default;
};

struct PathSurvey {
  std::vector<std::uint64_t> instances;
  friend bool operator==(const PathSurvey&, const PathSurvey&) = default;
};

struct SurveyedPath {
  std::uint64_t instance = 0, round_trip_ns = 0, bytes_per_second = 0;
  std::string failure;
  std::uint32_t rank_port = 0;
  std::string rank_port_failure{};
  friend bool operator==(const SurveyedPath&, const SurveyedPath&) = default;
};

struct SurveyedPaths {
  std::vector<SurveyedPath> paths;
  friend bool operator==(const SurveyedPaths&, const SurveyedPaths&) = default;
};

struct Notice {
  std::string text;
  friend bool operator==(const Notice&, const Notice&) = default;
};

struct Input {
  std::string data;
  friend bool operator==(const Input&, const Input&) = default;
};

struct InputTaken {
  friend bool operator==(const InputTaken&, const InputTaken&) = default;
};

struct RestartRanks {
  std::vector<std::uint32_t> ranks;
  std::string join{};
  std::uint32_t first_rank = 0, world_size = 0;
  std::string coordinator{};
  friend bool operator==(const RestartRanks&, const RestartRanks&) = default;
};

struct Membership {
  std::uint32_t rank = 0, epoch = 0;
  std::uint64_t lineage = 0;
  std::uint32_t world_size = 0;
  std::string door{};
  std::uint32_t joined = 0;
  std::vector<std::uint32_t> lost{};
  std::string cause{};
  std::uint64_t pause_us = 0;
  friend bool operator==(const Membership&, const Membership&) = default;
};

struct TracePiece {
  std::uint32_t rank = 0, restarts = 0;
  std::string data;
  friend bool operator==(const TracePiece&, const TracePiece&) = default;
};

struct TraceTaken {
  bool unwanted = false;
  friend bool operator==(const TraceTaken&, const TraceTaken&) = default;
};

/// In the order of their tags.
using Message =
    std::variant<Hail, Offer, BindPort, PortBound, StartRanks, RanksStarted, Failed, Output, Credit, Exit, Order, Over, Beat, EchoRequest,
                 Echo, PathSurvey, SurveyedPaths, Notice, Input, InputTaken, RestartRanks, Membership, TracePiece, TraceTaken>;

std::string encode(const Message& message);

/// Nothing where the bytes are no such message, hold more than the limits above, or a number that is out of its range. A message of a kind
/// that this version does not know is a Beat: it says that the other is there.
std::optional<Message> decode(ConstBytes bytes);

}  // namespace ringlet::job
