#include "tests/native/guest.hpp"

#include <utility>

namespace ringlet::test {

NativeGuest::NativeGuest(const Address& coordinator, const std::string& token, const std::string& name, const MakeNetwork& make_network)
    : network_(make_network(loop_)), authenticator_(token), coordinator_(coordinator), name_(name) {}

Status NativeGuest::agree(bool mine) {
  std::vector<std::int32_t> vote{mine ? 1 : 0};
  auto task = for_purpose(Purpose::agreement, make_all_reduce(ReduceOp::min, vote, vote, 1, world_->group().options()));
  const Status status = complete([&](Completion completion) {
    task.value().completion = std::move(completion);
    world_->group().start(GroupEngine::kOwnStream, std::move(task).value());
  });
  return status.ok() && vote[0] == 0 ? Status{Errc::cancelled, "a rank has not agreed"} : status;
}

NativeGuest::~NativeGuest() {
  meeting_.reset();
  world_.reset();
}

void NativeGuest::drive(const std::function<bool()>& done) {
  loop_.flush();
  while (!done()) loop_.wait();
}

Status NativeGuest::meet() {
  std::optional<Status> outcome;
  GuestEntryOptions options;
  options.coordinator = coordinator_;
  options.name = name_;
  world_.reset();
  const GuestEntry entry(loop_, *network_, authenticator_, options, [&](Result<GuestEntry::Entry>& seated) {
    if (!seated.ok()) {
      outcome = seated.status();
      return;
    }
    WorldOptions own;
    own.kernels = simd::find("");
    own.operation_timeout = Duration::seconds(60);
    world_ = std::make_unique<World>(loop_, seated.value().world_options(own));
    MeetingOptions waiting;
    waiting.timeout = seated.value().wait();
    epoch_ = seated.value().epoch;
    world_->adopt(std::move(seated).value().session, 0);
    waiting.coordinator = seated.value().coordinator;
    waiting.name = name_;
    meeting_ = std::make_unique<Meeting>(loop_, *network_, authenticator_, nullptr, *world_, waiting);
    meeting_->start([this, &outcome, elastic = seated.value().elastic](const Status& status) {
      if (!status.ok() || !elastic) outcome = status;
      if (status.ok() && elastic) start_entry_barrier(*world_, [&outcome](const Status& entered) { outcome = entered; });
    });
  });
  drive([&] { return outcome.has_value(); });
  return *outcome;
}

Status NativeGuest::complete(const std::function<void(Completion)>& start) {
  std::optional<Status> outcome;
  start([&outcome](const Status& status) { outcome = status; });
  drive([&] { return outcome.has_value(); });
  return *outcome;
}

Status NativeGuest::run(Result<CollectiveTask> task) {
  if (!task.ok()) return task.status();
  return complete([&](Completion completion) {
    task.value().completion = std::move(completion);
    world_->group().start(0, std::move(task).value());
  });
}

Status NativeGuest::send(Result<MessageTask> task) {
  if (!task.ok()) return task.status();
  return complete([&](Completion completion) {
    task.value().completion = std::move(completion);
    world_->group().send(0, std::move(task).value());
  });
}

Status NativeGuest::receive(Result<MessageTask> task) {
  if (!task.ok()) return task.status();
  return complete([&](Completion completion) {
    task.value().completion = std::move(completion);
    world_->group().receive(0, std::move(task).value());
  });
}

void NativeGuest::close() {
  bool closed = false;
  world_->close([&closed] { closed = true; });
  drive([&] { return closed; });
}

}  // namespace ringlet::test
