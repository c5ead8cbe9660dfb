#include "tools/job/messages.hpp"

#include <algorithm>
#include <functional>

#include "core/wire/fields.hpp"

namespace ringlet::job {

using wire::Is;

static void visit_fields(auto& fields, Is<Hail> auto& hail) {
  fields.number(1, hail.protocol);
  fields.text(2, hail.version);
  fields.text(3, hail.group);
  fields.text(4, hail.from);
  fields.bytes(5, hail.program);
  fields.bytes(6, hail.directory);
  fields.bytes(7, hail.public_key);
  fields.bytes(8, hail.signature);
}

static void visit_fields(auto& fields, Is<Offer> auto& offer) {
  fields.number(1, offer.protocol);
  fields.text(2, offer.version);
  fields.text(3, offer.name);
  fields.number(4, offer.free_ranks);
  fields.text(5, offer.refusal);
  fields.number(6, offer.refusal_code);
  fields.text(7, offer.launcher_address);
  fields.text(8, offer.own_address);
  fields.bytes(9, offer.public_key);
  fields.bytes(10, offer.signature);
}

static void visit_fields(auto& fields, Is<BindPort> auto& open) {
  fields.text(1, open.host);
  fields.number(2, open.port);
  fields.number(3, open.last_port);
}

static void visit_fields(auto& fields, Is<PortBound> auto& opened) { fields.number(1, opened.port); }

static void visit_fields(auto& fields, Is<Variable> auto& variable) {
  fields.bytes(1, variable.name);
  fields.bytes(2, variable.value);
}

static void visit_fields(auto& fields, Is<StartRanks> auto& start) {
  fields.fixed(1, start.job);
  fields.number(2, start.first_rank);
  fields.number(3, start.ranks);
  fields.number(4, start.world_size);
  fields.text(5, start.coordinator);
  fields.bytes(6, start.token);
  fields.bytes(7, start.program);
  fields.byte_strings(8, start.arguments, kMaxArguments);
  fields.messages(9, start.environment, kMaxVariables);
  fields.bytes(10, start.directory);
  fields.number(11, start.grace_ms);
  fields.number(12, start.terminal_columns);
  fields.bytes(13, start.preferred_directory);
  fields.flag(14, start.has_input);
  fields.number(15, start.input_rank);
  fields.flag(16, start.elastic);
  fields.flag(17, start.waits);
  fields.flag(18, start.trace);
}

static void visit_fields(auto& fields, Is<RestartRanks> auto& restart) {
  fields.numbers(1, restart.ranks, kMaxRanksPerMachine);
  fields.text(2, restart.join);
  fields.number(3, restart.first_rank);
  fields.number(4, restart.world_size);
  fields.text(5, restart.coordinator);
}

static void visit_fields(auto& fields, Is<RanksStarted> auto& started) { fields.numbers(1, started.pids, kMaxRanksPerMachine); }

static void visit_fields(auto& fields, Is<Failed> auto& failed) {
  fields.number(1, failed.exit_code);
  fields.text(2, failed.text);
}

static void visit_fields(auto& fields, Is<Output> auto& output) {
  fields.number(1, output.rank);
  fields.flag(2, output.error);
  fields.bytes(3, output.data);
}

static void visit_fields(auto& fields, Is<Credit> auto& credit) {
  fields.number(1, credit.bytes);
  fields.flag(2, credit.error);
}

static void visit_fields(auto& fields, Is<Exit> auto& exit) {
  fields.number(1, exit.rank);
  fields.number(2, exit.code);
  fields.number(3, exit.signal);
  fields.flag(4, exit.stopped);
  fields.number(5, exit.exec_error);
  fields.number(6, exit.follows);
}

static void visit_fields(auto& fields, Is<Order> auto& order) {
  fields.number(1, order.signal);
  fields.flag(2, order.stop);
  fields.number(3, order.grace_ms);
  fields.numbers(4, order.ranks, kMaxRanksPerMachine);
}

static void visit_fields(auto& fields, Is<Membership> auto& membership) {
  fields.number(1, membership.rank);
  fields.number(2, membership.epoch);
  fields.fixed(3, membership.lineage);
  fields.number(4, membership.world_size);
  fields.text(5, membership.door);
  fields.number(6, membership.joined);
  fields.numbers(7, membership.lost, kMaxWorldSize);
  fields.text(8, membership.cause);
  fields.number(9, membership.pause_us);
}

static void visit_fields(auto&, Is<Over> auto&) {}
static void visit_fields(auto&, Is<Beat> auto&) {}

static void visit_fields(auto& fields, Is<EchoRequest> auto& request) {
  fields.number(1, request.number);
  fields.bytes(2, request.padding);
  fields.number(3, request.answer_bytes);
}

static void visit_fields(auto& fields, Is<Echo> auto& echo) {
  fields.number(1, echo.number);
  fields.fixed(2, echo.unix_ms);
  fields.bytes(3, echo.padding);
  fields.number(4, echo.rank_port);
}

static void visit_fields(auto& fields, Is<PathSurvey> auto& survey) { fields.fixed_numbers(1, survey.instances, kMaxSurveyed); }

static void visit_fields(auto& fields, Is<SurveyedPath> auto& path) {
  fields.fixed(1, path.instance);
  fields.fixed(2, path.round_trip_ns);
  fields.fixed(3, path.bytes_per_second);
  fields.text(4, path.failure);
  fields.number(5, path.rank_port);
  fields.text(6, path.rank_port_failure);
}

static void visit_fields(auto& fields, Is<SurveyedPaths> auto& surveyed) { fields.messages(1, surveyed.paths, kMaxSurveyed); }

static void visit_fields(auto& fields, Is<Notice> auto& notice) { fields.text(1, notice.text); }
static void visit_fields(auto& fields, Is<Input> auto& input) { fields.bytes(1, input.data); }
static void visit_fields(auto&, Is<InputTaken> auto&) {}

static void visit_fields(auto& fields, Is<TracePiece> auto& piece) {
  fields.number(1, piece.rank);
  fields.number(2, piece.restarts);
  fields.bytes(3, piece.data);
}

static void visit_fields(auto& fields, Is<TraceTaken> auto& taken) { fields.flag(1, taken.unwanted); }

namespace {

constexpr std::uint32_t kMaxPort = 65'535;
constexpr std::uint32_t kMaxExitCode = 255;  // a larger one would look like another when a process exits with it

template <class Other>
bool in_range(const Other&) {
  return true;
}
bool is_introduction(const std::string& key, const std::string& signature) {
  return (key.empty() && signature.empty()) || (key.size() == kMachineKeyBytes && signature.size() == kMachineSignatureBytes);
}
bool in_range(const Hail& hail) { return is_introduction(hail.public_key, hail.signature); }
bool in_range(const Offer& offer) { return is_introduction(offer.public_key, offer.signature); }
bool in_range(const BindPort& open) { return open.port <= kMaxPort && open.last_port <= kMaxPort; }
bool in_range(const Echo& echo) { return echo.rank_port <= kMaxPort; }
bool in_range(const PortBound& opened) { return opened.port > 0 && opened.port <= kMaxPort; }
bool in_range(const StartRanks& start) {
  return start.ranks > 0 && start.ranks <= kMaxRanksPerMachine && start.world_size <= kMaxWorldSize && start.ranks <= start.world_size &&
         start.first_rank <= start.world_size - start.ranks && (!start.has_input || start.input_rank < start.world_size) &&
         (start.elastic || !start.waits);
}
bool in_range(const RestartRanks& restart) {
  const auto count = static_cast<std::uint32_t>(restart.ranks.size());
  const bool ascends = std::adjacent_find(restart.ranks.begin(), restart.ranks.end(), std::greater_equal<>()) == restart.ranks.end();
  const bool meets = restart.world_size <= kMaxWorldSize && count <= restart.world_size && restart.first_rank <= restart.world_size - count;
  return count > 0 && ascends && (!restart.join.empty() || meets);
}
bool in_range(const Failed& failed) { return failed.exit_code > 0 && failed.exit_code <= kMaxExitCode; }
bool in_range(const Exit& exit) { return exit.code <= kMaxExitCode && exit.signal <= kMaxSignal && exit.follows <= kMaxWorldSize; }
bool in_range(const Order& order) { return order.signal > 0 && order.signal <= kMaxSignal; }
bool in_range(const TracePiece& piece) { return piece.data.size() <= kMaxTracePieceBytes; }
bool in_range(const Input& input) { return input.data.size() <= kMaxInputBytes; }

}  // namespace

std::string encode(const Message& message) { return wire::encode_one_of(message); }

std::optional<Message> decode(ConstBytes bytes) {
  std::optional<Message> message = wire::decode_one_of<Message>(bytes, Beat{});
  if (message && !std::visit([](const auto& value) { return in_range(value); }, *message)) message.reset();
  return message;
}

}  // namespace ringlet::job
