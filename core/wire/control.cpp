#include "core/wire/control.hpp"

#include "core/wire/fields.hpp"

namespace ringlet::wire {

namespace {

constexpr std::size_t kMaxMembers = 65'536;
constexpr std::size_t kMaxOffers = 64;
constexpr std::size_t kMaxAbortText = 4'096;
constexpr std::size_t kMaxRunning = 64;
constexpr std::size_t kMaxAwaited = 1'024;

}  // namespace

static void tell_fields(auto& fields, Is<Offer> auto& offer) {
  fields.text(1, offer.host);
  fields.number(2, offer.port);
  fields.text(3, offer.interface);
  fields.choice(4, offer.kind);
  fields.number(5, offer.speed_mbps);
}

static void tell_fields(auto& fields, Is<Path> auto& path) {
  fields.text(1, path.dialler_interface);
  fields.text(2, path.acceptor_interface);
  fields.choice(3, path.kind);
  fields.number(4, path.speed_mbps);
  fields.number(5, path.round_trip_ns);
  fields.number(6, path.byte_ps);
  fields.number(7, path.tried);
}

static void tell_fields(auto& fields, Is<Hello> auto& hello) {
  fields.choice(1, hello.purpose);
  fields.number(2, hello.rank);
  fields.number(3, hello.world_size);
  fields.text(4, hello.host);
  fields.number(5, hello.port);
  fields.fixed(6, hello.world_id);
  fields.number(7, hello.guests);
  fields.text(8, hello.name);
  fields.number(9, hello.policy);
  fields.messages(10, hello.offers, kMaxOffers);
  fields.number(11, hello.to);
  fields.message(12, hello.path);
}

static void tell_fields(auto& fields, Is<Member> auto& member) {
  fields.number(1, member.rank);
  fields.text(2, member.host);
  fields.number(3, member.port);
  fields.text(4, member.name);
  fields.messages(5, member.offers, kMaxOffers);
}

static void tell_fields(auto& fields, Is<Roster> auto& roster) {
  fields.fixed(1, roster.world_id);
  fields.messages(2, roster.members, kMaxMembers);
}

static void tell_fields(auto& fields, Is<Welcome> auto& welcome) { fields.number(1, welcome.rank); }

static void tell_fields(auto& fields, Is<LinkCosts> auto& costs) {
  fields.number(1, costs.native_latency_ns);
  fields.number(2, costs.native_byte_ps);
  fields.number(3, costs.guest_latency_ns);
  fields.number(4, costs.guest_byte_ps);
}

static void tell_fields(auto& fields, Is<Placement> auto& placement) {
  fields.number(1, placement.policy);
  fields.message(2, placement.costs);
  fields.number(3, placement.exchange_bytes);
  fields.number(4, placement.direct_bytes);
}

static void tell_fields(auto& fields, Is<Ready> auto& ready) { fields.message(1, ready.measured); }

static void tell_fields(auto& fields, Is<Begin> auto& begin) { fields.message(1, begin.placement); }

static void tell_fields(auto& fields, Is<Abort> auto& abort) {
  fields.number(1, abort.code);
  fields.number(2, abort.rank);
  fields.text(3, abort.text);
}

static void tell_fields(auto& fields, Is<Seat> auto& seat) {
  fields.number(1, seat.rank);
  fields.number(2, seat.world_size);
  fields.number(3, seat.guests);
  fields.number(4, seat.present);
  fields.number(5, seat.heartbeat_timeout_ms);
  fields.number(6, seat.wait_ms);
}

static void tell_fields(auto& fields, Is<Probe> auto& probe) {
  fields.number(1, probe.number);
  fields.flag(2, probe.answer);
  fields.text(3, probe.padding);
}

static void tell_fields(auto& fields, Is<OperationState> auto& operation) {
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

static void tell_fields(auto& fields, Is<StateQuestion> auto& question) {
  fields.number(1, question.number);
  fields.flag(2, question.about_stream);
  fields.number(3, question.group);
  fields.number(4, question.stream);
}

static void tell_fields(auto& fields, Is<RankState> auto& state) {
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
}

static void set_known(Offer::Kind& kind, std::int32_t number) {
  kind = number == 1 ? Offer::Kind::wired : number == 2 ? Offer::Kind::wireless : Offer::Kind::unknown;
}

/// A purpose that this version does not know is taken for the first, whose other fields will not fit.
static void set_known(Hello::Purpose& purpose, std::int32_t number) {
  purpose = number >= 1 && number <= 3 ? static_cast<Hello::Purpose>(number) : Hello::Purpose::join;
}

// On the wire a number that is left out is 0.
static void clear(Abort& abort) { abort.rank = 0; }

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
