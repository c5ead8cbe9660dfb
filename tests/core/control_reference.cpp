#include "tests/core/control_reference.hpp"

namespace ringlet::test {

using wire::ControlMessage;

namespace reference = ringlet_reference;

namespace {

std::string random_text(SimRandom& random) {
  std::string text(random.below(4) == 0 ? random.below(300) : random.below(6), 'x');
  for (char& letter : text) letter = static_cast<char>('a' + random.below(26));
  return text;
}

std::uint32_t random_number(SimRandom& random) {
  return static_cast<std::uint32_t>(random.below(3) == 0 ? 0 : random.next() >> random.below(64));
}

std::uint64_t random_id(SimRandom& random) { return random.below(3) == 0 ? 0 : random.next(); }

std::vector<std::uint32_t> random_ranks(SimRandom& random) {
  std::vector<std::uint32_t> ranks;
  for (auto count = random.below(4); count > 0; --count) ranks.push_back(random_number(random));
  return ranks;
}

std::vector<std::uint64_t> random_ids(SimRandom& random) {
  std::vector<std::uint64_t> ids;
  for (auto count = random.below(4); count > 0; --count) ids.push_back(random_id(random));
  return ids;
}

std::vector<wire::GroupNumbers> random_group_numbers(SimRandom& random) {
  std::vector<wire::GroupNumbers> groups;
  for (auto count = random.below(4); count > 0; --count) groups.push_back({random_id(random), random_ids(random)});
  return groups;
}

void to_reference(const wire::GroupNumbers& group, reference::GroupNumbers& out) {
  out.set_key(group.key);
  for (const auto number : group.numbers) out.add_numbers(number);
}

wire::LinkCosts random_costs(SimRandom& random) { return {random_id(random), random_id(random), random_id(random), random_id(random)}; }

wire::Endpoint random_endpoint(SimRandom& random) {
  return {random_text(random), random_number(random), random_text(random), static_cast<wire::Endpoint::Kind>(random.below(3)),
          random_number(random)};
}

std::vector<wire::Endpoint> random_endpoints(SimRandom& random) {
  std::vector<wire::Endpoint> endpoints;
  for (auto count = random.below(4); count > 0; --count) endpoints.push_back(random_endpoint(random));
  return endpoints;
}

wire::RankSettings random_settings(SimRandom& random) {
  return {random_number(random), random_number(random), random_number(random), random_number(random),
          random.below(2) != 0,  random_number(random), random_number(random)};
}

void to_reference(const wire::RankSettings& settings, reference::RankSettings& out) {
  out.set_rank(settings.rank);
  out.set_world_size(settings.world_size);
  out.set_guests(settings.guests);
  out.set_policy(settings.policy);
  out.set_elastic(settings.elastic);
  out.set_order(settings.order);
  out.set_parts(settings.parts);
}

wire::Path random_path(SimRandom& random) {
  return {random_text(random),   random_text(random), static_cast<wire::Endpoint::Kind>(random.below(3)),
          random_number(random), random_id(random),   random_id(random),
          random_number(random)};
}

void to_reference(const wire::Path& path, reference::Path& out) {
  out.set_dialler_interface(path.dialler_interface);
  out.set_acceptor_interface(path.acceptor_interface);
  out.set_kind(static_cast<reference::Endpoint::Kind>(path.kind));
  out.set_speed_mbps(path.speed_mbps);
  out.set_round_trip_ns(path.round_trip_ns);
  out.set_byte_ps(path.byte_ps);
  out.set_tried(path.tried);
}

void to_reference(const wire::Endpoint& endpoint, reference::Endpoint& out) {
  out.set_host(endpoint.host);
  out.set_port(endpoint.port);
  out.set_interface(endpoint.interface);
  out.set_kind(static_cast<reference::Endpoint::Kind>(endpoint.kind));
  out.set_speed_mbps(endpoint.speed_mbps);
}

void to_reference(const std::vector<wire::Endpoint>& endpoints, auto& message) {
  for (const auto& endpoint : endpoints) to_reference(endpoint, *message.add_endpoints());
}

void to_reference(const wire::LinkCosts& costs, reference::LinkCosts& out) {
  out.set_native_latency_ns(costs.native_latency_ns);
  out.set_native_byte_ps(costs.native_byte_ps);
  out.set_guest_latency_ns(costs.guest_latency_ns);
  out.set_guest_byte_ps(costs.guest_byte_ps);
}

wire::OperationState random_operation(SimRandom& random) {
  wire::OperationState operation;
  operation.call = random_text(random);
  operation.number = random_id(random);
  operation.stream = random_number(random);
  operation.group = random_text(random);
  for (auto* number : {&operation.milliseconds, &operation.received, &operation.to_receive, &operation.sent, &operation.to_send})
    *number = random_id(random);
  for (auto count = random.below(4); count > 0; --count) operation.waits_for.push_back(random_number(random));
  return operation;
}

void to_reference(const wire::OperationState& operation, reference::OperationState& out) {
  out.set_call(operation.call);
  out.set_number(operation.number);
  out.set_stream(operation.stream);
  out.set_group(operation.group);
  out.set_milliseconds(operation.milliseconds);
  out.set_received(operation.received);
  out.set_to_receive(operation.to_receive);
  out.set_sent(operation.sent);
  out.set_to_send(operation.to_send);
  for (const auto rank : operation.waits_for) out.add_waits_for(rank);
}

wire::RankState random_state(SimRandom& random) {
  wire::RankState state;
  state.number = random_number(random);
  for (auto* number : {&state.called, &state.ended}) *number = random_id(random);
  for (auto count = random.below(3); count > 0; --count) state.running.push_back(random_operation(random));
  state.last = random_operation(random);
  for (auto* number : {&state.operations, &state.bytes_sent, &state.bytes_received}) *number = random_id(random);
  for (auto* text : {&state.host, &state.program, &state.links, &state.cipher}) *text = random_text(random);
  state.pid = random_number(random);
  state.parts = random_text(random);
  state.stalled = random.below(2) == 0;
  state.clock_ns = random_id(random);
  return state;
}

void to_reference(const wire::RankState& state, reference::RankState& out) {
  out.set_number(state.number);
  out.set_called(state.called);
  out.set_ended(state.ended);
  for (const auto& operation : state.running) to_reference(operation, *out.add_running());
  to_reference(state.last, *out.mutable_last());
  out.set_operations(state.operations);
  out.set_bytes_sent(state.bytes_sent);
  out.set_bytes_received(state.bytes_received);
  out.set_host(state.host);
  out.set_program(state.program);
  out.set_pid(state.pid);
  out.set_links(state.links);
  out.set_stalled(state.stalled);
  out.set_cipher(state.cipher);
  out.set_clock_ns(state.clock_ns);
  out.set_parts(state.parts);
}

}  // namespace

ControlMessage random_message(SimRandom& random) {
  switch (random.below(28)) {
    case 0:
      return wire::Join{random_settings(random), random_text(random), random_number(random), random_endpoints(random)};
    case 1: {
      wire::Roster roster;
      roster.world_id = random_id(random);
      for (auto count = random.below(6); count > 0; --count)
        roster.members.push_back(
            {random_number(random), random_text(random), random_number(random), random_text(random), random_endpoints(random)});
      return roster;
    }
    case 2:
      return wire::Welcome{random_number(random)};
    case 3:
      return wire::Ready{random_costs(random), random_endpoint(random), random_number(random), random_id(random), random_id(random)};
    case 4:
      return wire::Begin{random_number(random), random_costs(random),  random_id(random),    random_id(random),    random_endpoints(random),
                         random_number(random), random_number(random), random_ranks(random), random_ranks(random), random_id(random)};
    case 5:
      return wire::Seat{random_number(random), random_number(random), random_number(random),
                        random_number(random), random_number(random), random_number(random)};
    case 6:
      return wire::LinkProbe{random_number(random), random.below(2) == 0, random_text(random)};
    case 7:
      return wire::StateQuestion{random_number(random), random.below(2) == 0, random_number(random), random_number(random),
                                 random.below(2) == 0};
    case 8:
      return random_state(random);
    case 9:
      return wire::SeatRequest{random_text(random)};
    case 10:
      return wire::Connect{random_settings(random), random_id(random), random_text(random)};
    case 11:
      return wire::Propose{random_settings(random), random_id(random), random_number(random)};
    case 12:
      return wire::Nominate{random_path(random)};
    case 13:
      return wire::Unmet{random_ranks(random)};
    case 14:
      return wire::Revoke{random_number(random), random_number(random), static_cast<std::int32_t>(random_number(random)),
                          random_text(random)};
    case 15:
      return wire::Query{random_number(random), random_id(random)};
    case 16:
      return wire::Report{random_number(random), random_id(random), random_id(random),    random_id(random),
                          random_ranks(random),  random_id(random), random_ranks(random), random_ranks(random)};
    case 17:
      return wire::Proposal{random_number(random), random_id(random), random_ranks(random), random_id(random)};
    case 18:
      return wire::Acceptance{random_number(random), random_id(random)};
    case 19:
      return wire::Decision{random_number(random), random_ranks(random), random_id(random)};
    case 20:
      return wire::Knock{random_text(random)};
    case 21:
      return wire::Ticket{random_number(random), random_number(random), random_text(random),   random_number(random), random_number(random),
                          random_id(random),     random_number(random), random_number(random), random_number(random), random_number(random),
                          random_number(random), random_number(random), random_number(random), random_number(random)};
    case 22:
      return wire::LinkRates{random_ranks(random)};
    case 23:
      return wire::PartsQuestion{random_number(random)};
    case 24:
      return wire::PartsAnswer{random_number(random), random_group_numbers(random), random.below(2) != 0};
    case 25:
      return wire::PartsChange{random_number(random), random_ranks(random), random_group_numbers(random)};
    case 26:
      return wire::Unheard{random_number(random)};
    default:
      return wire::Abort{random_number(random), static_cast<std::int32_t>(random_number(random)), random_text(random)};
  }
}

reference::ControlMessage to_reference(const ControlMessage& message) {
  reference::ControlMessage out;
  if (const auto* join = std::get_if<wire::Join>(&message)) {
    auto* to = out.mutable_join();
    to_reference(join->settings, *to->mutable_settings());
    to->set_host(join->host);
    to->set_port(join->port);
    to_reference(join->endpoints, *to);
  } else if (const auto* roster = std::get_if<wire::Roster>(&message)) {
    auto* to = out.mutable_roster();
    to->set_world_id(roster->world_id);
    for (const auto& member : roster->members) {
      auto* added = to->add_members();
      added->set_rank(member.rank);
      added->set_host(member.host);
      added->set_port(member.port);
      added->set_name(member.name);
      to_reference(member.endpoints, *added);
    }
  } else if (const auto* request = std::get_if<wire::SeatRequest>(&message)) {
    out.mutable_seat_request()->set_name(request->name);
  } else if (const auto* connect = std::get_if<wire::Connect>(&message)) {
    auto* to = out.mutable_connect();
    to_reference(connect->settings, *to->mutable_settings());
    to->set_world_id(connect->world_id);
    to->set_name(connect->name);
  } else if (const auto* propose = std::get_if<wire::Propose>(&message)) {
    auto* to = out.mutable_propose();
    to_reference(propose->settings, *to->mutable_settings());
    to->set_world_id(propose->world_id);
    to->set_to(propose->to);
  } else if (const auto* nominate = std::get_if<wire::Nominate>(&message)) {
    to_reference(nominate->path, *out.mutable_nominate()->mutable_path());
  } else if (const auto* unmet = std::get_if<wire::Unmet>(&message)) {
    auto* to = out.mutable_unmet();
    for (const std::uint32_t rank : unmet->ranks) to->add_ranks(rank);
  } else if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
    out.mutable_welcome()->set_rank(welcome->rank);
  } else if (const auto* ready = std::get_if<wire::Ready>(&message)) {
    to_reference(ready->measured, *out.mutable_ready()->mutable_measured());
    to_reference(ready->door, *out.mutable_ready()->mutable_door());
    out.mutable_ready()->set_next_byte_ps(ready->next_byte_ps);
    out.mutable_ready()->set_machine(ready->machine);
    out.mutable_ready()->set_second_byte_ps(ready->second_byte_ps);
  } else if (const auto* begin = std::get_if<wire::Begin>(&message)) {
    auto* to = out.mutable_begin();
    to->set_policy(begin->policy);
    to_reference(begin->costs, *to->mutable_costs());
    to->set_exchange_bytes(begin->exchange_bytes);
    to->set_direct_bytes(begin->direct_bytes);
    for (const auto& door : begin->doors) to_reference(door, *to->add_doors());
    to->set_order(begin->order);
    to->set_parts(begin->parts);
    for (const std::uint32_t machine : begin->machines) to->add_machines(machine);
    for (const std::uint32_t speed : begin->speeds) to->add_speeds(speed);
    to->set_job(begin->job);
  } else if (const auto* probe = std::get_if<wire::LinkProbe>(&message)) {
    auto* to = out.mutable_link_probe();
    to->set_number(probe->number);
    to->set_answer(probe->answer);
    to->set_padding(probe->padding);
  } else if (const auto* abort = std::get_if<wire::Abort>(&message)) {
    auto* to = out.mutable_abort();
    to->set_code(abort->code);
    to->set_rank(abort->rank);
    to->set_text(abort->text);
  } else if (const auto* seat = std::get_if<wire::Seat>(&message)) {
    auto* to = out.mutable_seat();
    to->set_rank(seat->rank);
    to->set_world_size(seat->world_size);
    to->set_guests(seat->guests);
    to->set_present(seat->present);
    to->set_heartbeat_timeout_ms(seat->heartbeat_timeout_ms);
    to->set_wait_ms(seat->wait_ms);
  } else if (const auto* question = std::get_if<wire::StateQuestion>(&message)) {
    auto* to = out.mutable_state_question();
    to->set_number(question->number);
    to->set_about_stream(question->about_stream);
    to->set_group(question->group);
    to->set_stream(question->stream);
    to->set_about_clock(question->about_clock);
  } else if (const auto* state = std::get_if<wire::RankState>(&message)) {
    to_reference(*state, *out.mutable_rank_state());
  } else if (const auto* revoke = std::get_if<wire::Revoke>(&message)) {
    auto* to = out.mutable_revoke();
    to->set_epoch(revoke->epoch);
    to->set_code(revoke->code);
    to->set_rank(revoke->rank);
    to->set_text(revoke->text);
  } else if (const auto* query = std::get_if<wire::Query>(&message)) {
    out.mutable_query()->set_epoch(query->epoch);
    out.mutable_query()->set_ballot(query->ballot);
  } else if (const auto* report = std::get_if<wire::Report>(&message)) {
    auto* to = out.mutable_report();
    to->set_epoch(report->epoch);
    to->set_ballot(report->ballot);
    to->set_promised(report->promised);
    to->set_accepted_ballot(report->accepted_ballot);
    for (const auto rank : report->accepted) to->add_accepted(rank);
    to->set_accepted_lineage(report->accepted_lineage);
    for (const auto rank : report->hears) to->add_hears(rank);
    for (const auto rank : report->dead) to->add_dead(rank);
  } else if (const auto* proposal = std::get_if<wire::Proposal>(&message)) {
    auto* to = out.mutable_proposal();
    to->set_epoch(proposal->epoch);
    to->set_ballot(proposal->ballot);
    for (const auto rank : proposal->members) to->add_members(rank);
    to->set_lineage(proposal->lineage);
  } else if (const auto* acceptance = std::get_if<wire::Acceptance>(&message)) {
    out.mutable_acceptance()->set_epoch(acceptance->epoch);
    out.mutable_acceptance()->set_ballot(acceptance->ballot);
  } else if (const auto* decision = std::get_if<wire::Decision>(&message)) {
    auto* to = out.mutable_decision();
    to->set_epoch(decision->epoch);
    for (const auto rank : decision->members) to->add_members(rank);
    to->set_lineage(decision->lineage);
  } else if (const auto* unheard = std::get_if<wire::Unheard>(&message)) {
    out.mutable_unheard()->set_epoch(unheard->epoch);
  } else if (const auto* knock = std::get_if<wire::Knock>(&message)) {
    out.mutable_knock()->set_name(knock->name);
  } else if (const auto* ticket = std::get_if<wire::Ticket>(&message)) {
    auto* to = out.mutable_ticket();
    to->set_rank(ticket->rank);
    to->set_world_size(ticket->world_size);
    to->set_host(ticket->host);
    to->set_port(ticket->port);
    to->set_epoch(ticket->epoch);
    to->set_lineage(ticket->lineage);
    to->set_policy(ticket->policy);
    to->set_heartbeat_timeout_ms(ticket->heartbeat_timeout_ms);
    to->set_wait_ms(ticket->wait_ms);
    to->set_guests(ticket->guests);
    to->set_page_port(ticket->page_port);
    to->set_members(ticket->members);
    to->set_order(ticket->order);
    to->set_parts(ticket->parts);
  } else if (const auto* rates = std::get_if<wire::LinkRates>(&message)) {
    auto* to = out.mutable_link_rates();
    for (const auto cost : rates->byte_ps) to->add_byte_ps(cost);
  } else if (const auto* asked = std::get_if<wire::PartsQuestion>(&message)) {
    out.mutable_parts_question()->set_number(asked->number);
  } else if (const auto* answer = std::get_if<wire::PartsAnswer>(&message)) {
    auto* to = out.mutable_parts_answer();
    to->set_number(answer->number);
    for (const auto& group : answer->unstarted) to_reference(group, *to->add_unstarted());
    to->set_refuses(answer->refuses);
  } else if (const auto* change = std::get_if<wire::PartsChange>(&message)) {
    auto* to = out.mutable_parts_change();
    to->set_number(change->number);
    for (const auto speed : change->speeds) to->add_speeds(speed);
    for (const auto& group : change->first) to_reference(group, *to->add_first());
  }
  return out;
}

}  // namespace ringlet::test
