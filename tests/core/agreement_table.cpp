#include "tests/core/agreement_table.hpp"

#include "core/base/check.hpp"

namespace ringlet::test {

namespace {

wire::ControlMessage to_control(const AgreementMessage& message) {
  return std::visit([](const auto& kind) -> wire::ControlMessage { return kind; }, message);
}

void apply(Agreement& agreement, Event event, int peer, const AgreementMessage* message) {
  switch (event) {
    case Event::start:
      return agreement.start();
    case Event::receive:
      return agreement.receive(peer, *message);
    case Event::lose:
      return agreement.lose(peer);
    case Event::prove_dead:
      return agreement.prove_dead(peer);
    case Event::stop_waiting:
      return agreement.stop_waiting_for_reports();
    case Event::take_over:
      return agreement.take_over();
    case Event::stand_alone:
      return agreement.stand_alone();
  }
}

}  // namespace

AgreementTable::Id AgreementTable::add(const Agreement& agreement) {
  const auto [found, added] = agreement_ids_.try_emplace(agreement.fingerprint(), static_cast<Id>(agreements_.size()));
  if (added) {
    agreements_.push_back(agreement);
    View view{agreement.outcome().has_value(), agreement.leads(), agreement.lacks_quorum(), 0, 0};
    for (int peer = 0; peer < 32; ++peer) view.hears |= static_cast<std::uint32_t>(agreement.hears(peer)) << peer;
    for (const int peer : agreement.unproved()) view.unproved |= 1U << peer;
    views_.push_back(view);
  }
  // The fingerprint leaves nothing out.
  RINGLET_CHECK(agreements_[found->second] == agreement);
  return found->second;
}

AgreementTable::Id AgreementTable::add(const AgreementMessage& message) {
  const auto [found, added] = message_ids_.try_emplace(wire::encode_control(to_control(message)), static_cast<Id>(messages_.size()));
  if (added) messages_.push_back(message);
  return found->second;
}

const AgreementTable::Step& AgreementTable::step(Id agreement, Event event, int peer, Id message) {
  RINGLET_CHECK(agreement < 1U << 28 && message < 1U << 26);
  const std::uint64_t key = std::uint64_t{agreement} << 36 | std::uint64_t{message} << 10 | static_cast<std::uint64_t>(peer) << 4 |
                            static_cast<std::uint64_t>(event);
  const auto known = steps_.find(key);
  if (known != steps_.end()) return known->second;
  Agreement next = agreements_[agreement];
  apply(next, event, peer, event == Event::receive ? &messages_[message] : nullptr);
  Step step;
  for (const Agreement::Send& send : next.take_sends()) step.sends.push_back({send.to, add(send.message)});
  step.next = add(next);
  return steps_.emplace(key, std::move(step)).first->second;
}

AgreementTable::Id AgreementTable::push(Id queue, Id message) {
  const std::uint64_t key = std::uint64_t{queue} << 32 | message;
  const auto known = pushes_.find(key);
  if (known != pushes_.end()) return known->second;
  std::vector<Id> longer = queues_[queue];
  longer.push_back(message);
  const Id id = add_queue(std::move(longer));
  pushes_.emplace(key, id);
  return id;
}

AgreementTable::Id AgreementTable::add_queue(std::vector<Id> queue) {
  std::string name;
  for (const Id message : queue) name += std::to_string(message) + ' ';
  const auto known = queue_ids_.find(name);
  if (known != queue_ids_.end()) return known->second;
  const Id rest = queue.empty() ? 0 : add_queue({queue.begin() + 1, queue.end()});
  const Id id = static_cast<Id>(queues_.size());
  queues_.push_back(std::move(queue));
  rests_.push_back(rest);
  queue_ids_.emplace(std::move(name), id);
  return id;
}

}  // namespace ringlet::test
