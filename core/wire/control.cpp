#include "core/wire/control.hpp"

#include "core/wire/fields.hpp"

namespace ringlet::wire {

namespace {

constexpr std::size_t kMaxMembers = 65'536;
constexpr std::size_t kMaxAbortText = 4'096;
constexpr std::size_t kMaxRunning = 64;
constexpr std::size_t kMaxAwaited = 1'024;
constexpr std::size_t kMaxStreamNumbers = 2'048;

}  // namespace

static void visit_fields(auto& fields, Is<Endpoint> auto& endpoint) {
  fields.text(1, endpoint.host);
  fields.number(2, endpoint.port);
  fields.text(3, endpoint.interface);
  fields.choice(4, endpoint.kind);
  fields.number(5, endpoint.speed_mbps);
}

static void visit_fields(auto& fields, Is<Path> auto& path) {
  fields.text(1, path.dialler_interface);
  fields.text(2, path.acceptor_interface);
  fields.choice(3, path.kind);
  fields.number(4, path.speed_mbps);
  fields.number(5, path.round_trip_ns);
  fields.number(6, path.byte_ps);
  fields.number(7, path.tried);
}

static void visit_fields(auto& fields, Is<RankSettings> auto& settings) {
  fields.number(1, settings.rank);
  fields.number(2, settings.world_size);
  fields.number(3, settings.guests);
  fields.number(4, settings.policy);
  fields.flag(5, settings.elastic);
  fields.number(6, settings.order);
  fields.number(7, settings.parts);
}

static void visit_fields(auto& fields, Is<Join> auto& join) {
  fields.message(1, join.settings);
  fields.text(2, join.host);
  fields.number(3, join.port);
  fields.messages(4, join.endpoints, kMaxEndpoints);
}

static void visit_fields(auto& fields, Is<SeatRequest> auto& request) { fields.text(1, request.name); }

static void visit_fields(auto& fields, Is<Connect> auto& connect) {
  fields.message(1, connect.settings);
  fields.fixed(2, connect.world_id);
  fields.text(3, connect.name);
}

static void visit_fields(auto& fields, Is<Propose> auto& propose) {
  fields.message(1, propose.settings);
  fields.fixed(2, propose.world_id);
  fields.number(3, propose.to);
}

static void visit_fields(auto& fields, Is<Nominate> auto& nominate) { fields.message(1, nominate.path); }

static void visit_fields(auto& fields, Is<Member> auto& member) {
  fields.number(1, member.rank);
  fields.text(2, member.host);
  fields.number(3, member.port);
  fields.text(4, member.name);
  fields.messages(5, member.endpoints, kMaxEndpoints);
}

static void visit_fields(auto& fields, Is<Roster> auto& roster) {
  fields.fixed(1, roster.world_id);
  fields.messages(2, roster.members, kMaxMembers);
}

static void visit_fields(auto& fields, Is<Welcome> auto& welcome) { fields.number(1, welcome.rank); }

static void visit_fields(auto& fields, Is<Seat> auto& seat) {
  fields.number(1, seat.rank);
  fields.number(2, seat.world_size);
  fields.number(3, seat.guests);
  fields.number(4, seat.present);
  fields.number(5, seat.heartbeat_timeout_ms);
  fields.number(6, seat.wait_ms);
}

static void visit_fields(auto& fields, Is<LinkProbe> auto& probe) {
  fields.number(1, probe.number);
  fields.flag(2, probe.answer);
  fields.bytes(3, probe.padding);
}

static void visit_fields(auto& fields, Is<LinkCosts> auto& costs) {
  fields.number(1, costs.native_latency_ns);
  fields.number(2, costs.native_byte_ps);
  fields.number(3, costs.guest_latency_ns);
  fields.number(4, costs.guest_byte_ps);
}

static void visit_fields(auto& fields, Is<Unmet> auto& unmet) { fields.numbers(1, unmet.ranks, kMaxAwaited); }

static void visit_fields(auto& fields, Is<Ready> auto& ready) {
  fields.message(1, ready.measured);
  fields.message(2, ready.door);
  fields.number(3, ready.next_byte_ps);
  fields.number(4, ready.machine);
  fields.number(5, ready.second_byte_ps);
}

static void visit_fields(auto& fields, Is<Begin> auto& begin) {
  fields.number(1, begin.policy);
  fields.message(2, begin.costs);
  fields.number(3, begin.exchange_bytes);
  fields.number(4, begin.direct_bytes);
  fields.messages(5, begin.doors, kMaxMembers);
  fields.number(6, begin.order);
  fields.number(7, begin.parts);
  fields.numbers(8, begin.machines, kMaxMembers);
  fields.numbers(9, begin.speeds, kMaxMembers);
  fields.fixed(10, begin.job);
}

static void visit_fields(auto& fields, Is<Abort> auto& abort) {
  fields.number(1, abort.code);
  fields.number(2, abort.rank);
  fields.text(3, abort.text);
}

static void visit_fields(auto& fields, Is<OperationState> auto& operation) {
  fields.text(1, operation.call);
  fields.number(2, operation.number);
  fields.number(3, operation.stream);
  fields.text(4, operation.group);
  fields.number(5, operation.milliseconds);
  fields.number(6, operation.received);
  fields.number(7, operation.to_receive);
  fields.number(8, operation.sent);
  fields.number(9, operation.to_send);
  fields.numbers(10, operation.waits_for, kMaxAwaited);
}

static void visit_fields(auto& fields, Is<StateQuestion> auto& question) {
  fields.number(1, question.number);
  fields.flag(2, question.about_stream);
  fields.number(3, question.group);
  fields.number(4, question.stream);
  fields.flag(5, question.about_clock);
}

static void visit_fields(auto& fields, Is<RankState> auto& state) {
  fields.number(1, state.number);
  fields.number(2, state.called);
  fields.number(3, state.ended);
  fields.messages(4, state.running, kMaxRunning);
  fields.message(5, state.last);
  fields.number(6, state.operations);
  fields.number(7, state.bytes_sent);
  fields.number(8, state.bytes_received);
  fields.text(9, state.host);
  fields.text(10, state.program);
  fields.number(11, state.pid);
  fields.text(12, state.links);
  fields.flag(13, state.stalled);
  fields.text(14, state.cipher);
  fields.fixed(15, state.clock_ns);
  fields.text(16, state.parts);
}

static void visit_fields(auto& fields, Is<Revoke> auto& revoke) {
  fields.number(1, revoke.epoch);
  fields.number(2, revoke.code);
  fields.number(3, revoke.rank);
  fields.text(4, revoke.text);
}

static void visit_fields(auto& fields, Is<Query> auto& query) {
  fields.number(1, query.epoch);
  fields.number(2, query.ballot);
}

static void visit_fields(auto& fields, Is<Report> auto& report) {
  fields.number(1, report.epoch);
  fields.number(2, report.ballot);
  fields.number(3, report.promised);
  fields.number(4, report.accepted_ballot);
  fields.numbers(5, report.accepted, kMaxMembers);
  fields.fixed(6, report.accepted_lineage);
  fields.numbers(7, report.hears, kMaxMembers);
  fields.numbers(8, report.dead, kMaxMembers);
}

static void visit_fields(auto& fields, Is<Proposal> auto& proposal) {
  fields.number(1, proposal.epoch);
  fields.number(2, proposal.ballot);
  fields.numbers(3, proposal.members, kMaxMembers);
  fields.fixed(4, proposal.lineage);
}

static void visit_fields(auto& fields, Is<Acceptance> auto& acceptance) {
  fields.number(1, acceptance.epoch);
  fields.number(2, acceptance.ballot);
}

static void visit_fields(auto& fields, Is<Decision> auto& decision) {
  fields.number(1, decision.epoch);
  fields.numbers(2, decision.members, kMaxMembers);
  fields.fixed(3, decision.lineage);
}

static void visit_fields(auto& fields, Is<Unheard> auto& unheard) { fields.number(1, unheard.epoch); }

static void visit_fields(auto& fields, Is<Knock> auto& knock) { fields.text(1, knock.name); }

static void visit_fields(auto& fields, Is<Ticket> auto& ticket) {
  fields.number(1, ticket.rank);
  fields.number(2, ticket.world_size);
  fields.text(3, ticket.host);
  fields.number(4, ticket.port);
  fields.number(5, ticket.epoch);
  fields.fixed(6, ticket.lineage);
  fields.number(7, ticket.policy);
  fields.number(8, ticket.heartbeat_timeout_ms);
  fields.number(9, ticket.wait_ms);
  fields.number(10, ticket.guests);
  fields.number(11, ticket.page_port);
  fields.number(12, ticket.members);
  fields.number(13, ticket.order);
  fields.number(14, ticket.parts);
}

static void visit_fields(auto& fields, Is<LinkRates> auto& rates) { fields.numbers(1, rates.byte_ps, kMaxMembers); }

static void visit_fields(auto& fields, Is<PartsQuestion> auto& question) { fields.number(1, question.number); }

static void visit_fields(auto& fields, Is<GroupNumbers> auto& group) {
  fields.fixed(1, group.key);
  fields.fixed_numbers(2, group.numbers, kMaxStreamNumbers);
}

static void visit_fields(auto& fields, Is<PartsAnswer> auto& answer) {
  fields.number(1, answer.number);
  fields.messages(3, answer.unstarted, kMostToldGroups);
  fields.flag(4, answer.refuses);
}

static void visit_fields(auto& fields, Is<PartsChange> auto& change) {
  fields.number(1, change.number);
  fields.numbers(2, change.speeds, kMaxMembers);
  fields.messages(4, change.first, kMostToldGroups);
}

static void set_known(Endpoint::Kind& kind, std::int32_t number) {
  kind = number == 1 ? Endpoint::Kind::wired : number == 2 ? Endpoint::Kind::wireless : Endpoint::Kind::unknown;
}

// An absent number on the wire stands for 0, while the default rank of these two is -1.
static void clear(Abort& abort) { abort.rank = 0; }
static void clear(Revoke& revoke) { revoke.rank = 0; }

template <class... Kinds>
static bool is_one_of(const ControlMessage& message) {
  return (std::holds_alternative<Kinds>(message) || ...);
}

bool is_of_agreement(const ControlMessage& message) { return is_one_of<Query, Report, Proposal, Acceptance, Decision, Unheard>(message); }

std::string encode_control(const ControlMessage& message) { return encode_one_of(message); }

std::optional<ControlMessage> decode_control(ConstBytes bytes) { return decode_one_of<ControlMessage>(bytes); }

Abort to_abort(const Status& status) {
  return {static_cast<std::uint32_t>(status.code()), status.rank(), status.text().substr(0, kMaxAbortText)};
}

Status to_status(const Abort& abort) {
  const bool known = abort.code > 0 && abort.code <= static_cast<std::uint32_t>(Errc::io_error);
  return {known ? static_cast<Errc>(abort.code) : Errc::protocol_error, abort.text.substr(0, kMaxAbortText), abort.rank};
}

}  // namespace ringlet::wire
