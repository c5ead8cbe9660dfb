#include "tools/agent/messages.hpp"

#include "core/wire/fields.hpp"

namespace ringlet::agent {

using wire::Is;

static void visit_fields(auto& fields, Is<Hail> auto& hail) {
  fields.number(1, hail.protocol);
  fields.text(2, hail.version);
  fields.text(3, hail.group);
  fields.text(4, hail.from);
  fields.text(5, hail.program);
  fields.text(6, hail.directory);
}

static void visit_fields(auto& fields, Is<Offer> auto& offer) {
  fields.number(1, offer.protocol);
  fields.text(2, offer.version);
  fields.text(3, offer.name);
  fields.number(4, offer.free_ranks);
  fields.text(5, offer.refusal);
}

static void visit_fields(auto& fields, Is<Open> auto& open) { fields.text(1, open.host); }

static void visit_fields(auto& fields, Is<Opened> auto& opened) { fields.number(1, opened.port); }

static void visit_fields(auto& fields, Is<Variable> auto& variable) {
  fields.text(1, variable.name);
  fields.text(2, variable.value);
}

static void visit_fields(auto& fields, Is<Start> auto& start) {
  fields.fixed(1, start.job);
  fields.number(2, start.first_rank);
  fields.number(3, start.ranks);
  fields.number(4, start.world_size);
  fields.text(5, start.coordinator);
  fields.text(6, start.token);
  fields.text(7, start.program);
  fields.texts(8, start.arguments, kMaxArguments);
  fields.messages(9, start.environment, kMaxVariables);
  fields.text(10, start.directory);
  fields.number(11, start.grace_ms);
  fields.number(12, start.terminal_columns);
}

static void visit_fields(auto& fields, Is<Started> auto& started) { fields.numbers(1, started.pids, kMaxRanksPerMachine); }

static void visit_fields(auto& fields, Is<Failed> auto& failed) {
  fields.number(1, failed.exit_code);
  fields.text(2, failed.text);
}

static void visit_fields(auto& fields, Is<Output> auto& output) {
  fields.number(1, output.rank);
  fields.flag(2, output.error);
  fields.text(3, output.data);
}

static void visit_fields(auto& fields, Is<Credit> auto& credit) { fields.number(1, credit.bytes); }

static void visit_fields(auto& fields, Is<Exit> auto& exit) {
  fields.number(1, exit.rank);
  fields.number(2, exit.code);
  fields.number(3, exit.signal);
  fields.flag(4, exit.stopped);
}

static void visit_fields(auto& fields, Is<Order> auto& order) {
  fields.number(1, order.signal);
  fields.flag(2, order.stop);
  fields.number(3, order.grace_ms);
}

static void visit_fields(auto&, Is<Over> auto&) {}
static void visit_fields(auto&, Is<Beat> auto&) {}

static void visit_fields(auto& fields, Is<Probe> auto& probe) {
  fields.number(1, probe.number);
  fields.text(2, probe.padding);
  fields.number(3, probe.answer_bytes);
}

static void visit_fields(auto& fields, Is<Echo> auto& echo) {
  fields.number(1, echo.number);
  fields.fixed(2, echo.unix_ms);
  fields.text(3, echo.padding);
}

static void visit_fields(auto& fields, Is<Survey> auto& survey) { fields.fixed_numbers(1, survey.instances, kMaxSurveyed); }

static void visit_fields(auto& fields, Is<Reached> auto& reached) {
  fields.fixed(1, reached.instance);
  fields.fixed(2, reached.round_trip_ns);
  fields.fixed(3, reached.bytes_per_second);
  fields.text(4, reached.failure);
}

static void visit_fields(auto& fields, Is<Surveyed> auto& surveyed) { fields.messages(1, surveyed.ways, kMaxSurveyed); }

std::string encode(const Message& message) { return wire::encode_one_of(message); }

// A kind that this version does not know is as good as a sign of life.
std::optional<Message> decode(ConstBytes bytes) { return wire::decode_one_of<Message>(bytes, Beat{}); }

}  // namespace ringlet::agent
