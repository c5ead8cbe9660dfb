#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/bytes.hpp"

// proto/agent.proto is the definition; these are its messages as values.
namespace ringlet::agent {

/// Two that speak different protocols do nothing together but tell each other.
inline constexpr std::uint32_t kProtocol = 1;
inline constexpr std::size_t kMaxMessageBytes = 1 << 20;
inline constexpr std::size_t kMaxArguments = 4'096;
inline constexpr std::size_t kMaxVariables = 256;
inline constexpr std::size_t kMaxRanksPerMachine = 224;
/// How much output of one machine may be under way.
inline constexpr std::size_t kOutputWindowBytes = 256 * 1024;

inline constexpr std::size_t kMaxEchoBytes = 256 * 1024;
inline constexpr std::size_t kMaxSurveyed = 32;  // machines

struct Hail {
  std::uint32_t protocol = 0;
  std::string version, group, from, program, directory;
  friend bool operator==(const Hail&, const Hail&) = default;
};

struct Offer {
  std::uint32_t protocol = 0;
  std::string version, name;
  std::uint32_t free_ranks = 0;
  std::string refusal;
  friend bool operator==(const Offer&, const Offer&) = default;
};

struct Open {
  std::string host;
  friend bool operator==(const Open&, const Open&) = default;
};

struct Opened {
  std::uint32_t port = 0;
  friend bool operator==(const Opened&, const Opened&) = default;
};

struct Variable {
  std::string name, value;
  friend bool operator==(const Variable&, const Variable&) = default;
};

struct Start {
  std::uint64_t job = 0;
  std::uint32_t first_rank = 0, ranks = 0, world_size = 0;
  std::string coordinator, token, program;
  std::vector<std::string> arguments{};
  std::vector<Variable> environment{};
  std::string directory{};
  std::uint32_t grace_ms = 0, terminal_columns = 0;
  friend bool operator==(const Start&, const Start&) = default;
};

struct Started {
  std::vector<std::uint32_t> pids;
  friend bool operator==(const Started&, const Started&) = default;
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
  friend bool operator==(const Credit&, const Credit&) = default;
};

struct Exit {
  std::uint32_t rank = 0, code = 0, signal = 0;
  bool stopped = false;
  friend bool operator==(const Exit&, const Exit&) = default;
};

struct Order {
  std::uint32_t signal = 0;
  bool stop = false;
  std::uint32_t grace_ms = 0;
  friend bool operator==(const Order&, const Order&) = default;
};

struct Over {
  friend bool operator==(const Over&, const Over&) = default;
};

struct Beat {
  friend bool operator==(const Beat&, const Beat&) = default;
};

struct Probe {
  std::uint32_t number = 0;
  std::string padding;
  std::uint32_t answer_bytes = 0;
  friend bool operator==(const Probe&, const Probe&) = default;
};

struct Echo {
  std::uint32_t number = 0;
  std::uint64_t unix_ms = 0;
  std::string padding;
  friend bool operator==(const Echo&, const Echo&) = default;
};

struct Survey {
  std::vector<std::uint64_t> instances;
  friend bool operator==(const Survey&, const Survey&) = default;
};

struct Reached {
  std::uint64_t instance = 0, round_trip_ns = 0, bytes_per_second = 0;
  std::string failure;
  friend bool operator==(const Reached&, const Reached&) = default;
};

struct Surveyed {
  std::vector<Reached> ways;
  friend bool operator==(const Surveyed&, const Surveyed&) = default;
};

/// In the order of their tags.
using Message =
    std::variant<Hail, Offer, Open, Opened, Start, Started, Failed, Output, Credit, Exit, Order, Over, Beat, Probe, Echo, Survey, Surveyed>;

std::string encode(const Message& message);

/// Nothing where the bytes are no such message or hold more than the limits above. A message of a kind that this version does not know is
/// a Beat: it says that the other is there.
std::optional<Message> decode(ConstBytes bytes);

}  // namespace ringlet::agent
