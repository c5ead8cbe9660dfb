#include <algorithm>
#include <chrono>
#include <numeric>
#include <ringlet/trace.hpp>
#include <string>

#include "core/base/refuse.hpp"
#include "core/engine/requests.hpp"
#include "native/shared_group.hpp"

// How the ranks that are left go on.
namespace ringlet::native {

namespace {

using Clock = std::chrono::steady_clock;

void refuse_unless_elastic(const NativeWorld& world) {
  if (!world.elastic()) refuse("the group is not elastic; set RINGLET_ELASTIC=on, or the option elastic, on all ranks");
  if (world.has_left()) refuse("this rank has left this world");
}

std::chrono::milliseconds until(Clock::time_point deadline) {
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()), std::chrono::milliseconds(1));
}

}  // namespace

Succession SharedGroup::await_succession(std::chrono::milliseconds timeout) {
  struct Wait {
    DoneFlag done;
    Succession found;
    bool interrupted = false;
  };
  const auto wait = std::make_shared<Wait>();
  if (!world_has_failed()) refuse("the world has not failed; reform() follows an error that ended it, such as PeerLost, or revoke()");
  driver().run([&] {
    world_->epochs().when_succeeded(core_, [wait, &driver = driver()](const Succession& succession) {
      if (wait->done.is_set()) return;
      wait->found = succession;
      driver.set(wait->done);
    });
  });
  const Interruption interruption{interruption_.is_wanted, [wait, &driver = driver(), interruptions = world_->config().interruptions] {
                                    if (wait->done.is_set()) return;
                                    wait->interrupted = true;
                                    ++*interruptions;
                                    driver.set(wait->done);
                                  }};
  if (!driver().wait(wait->done, Duration::milliseconds(timeout.count()), interruption)) {
    driver().check();
    throw_if_failed({Errc::timed_out, "rank " + std::to_string(core_rank()) + " has waited for " + std::to_string(timeout.count()) +
                                          " ms for a world without the lost ranks; too few of the others can be reached"});
  }
  if (wait->interrupted)
    throw_if_failed({Errc::cancelled, "rank " + std::to_string(core_rank()) + " was interrupted in reform(), which may be called again"});
  if (wait->found.world == nullptr) {
    world_->be_left_out();
    throw_if_failed({Errc::peer_lost,
                     "the others have gone on without rank " + std::to_string(core_rank()) + ", which they did not hear any more",
                     core_rank()});
  }
  return wait->found;
}

std::shared_ptr<SharedGroup> SharedGroup::reform(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage) {
  driver_.check();
  // The world that was being formed has the lost ranks in it.
  drop_growth();
  auto last = reform_world(call, before, lineage);
  const std::lock_guard lock(following_);
  next_.reset();
  return last;
}

std::shared_ptr<SharedGroup> SharedGroup::reform_world(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage) {
  refuse_unless_elastic(*world_);
  Duration limit = options().operation_timeout;
  throw_if_failed(check_call(call, limit));
  const auto deadline = Clock::now() + std::chrono::nanoseconds(limit.nanoseconds);
  before.resize(static_cast<std::size_t>(world_size()));
  std::iota(before.begin(), before.end(), 0);
  std::shared_ptr<SharedGroup> last = shared_from_this();
  while (true) {
    const Succession next = last->await_succession(until(deadline));
    std::vector<int> members;
    for (const int rank : next.members) members.push_back(before[static_cast<std::size_t>(rank)]);
    before = std::move(members);
    lineage = next.lineage;
    last = last->follow(*next.world);
    if (last->settle_votes()) return last;
  }
}

/// The group of the next epoch stays until reform() has found the last one, however often ranks were lost since agree() came here.
std::shared_ptr<SharedGroup> SharedGroup::follow(ringlet::World& next) {
  auto group = NativeWorld::group_of(world_, next);
  const std::lock_guard lock(following_);
  next_ = group;
  return group;
}

/// Returns false where another rank was lost meanwhile. It has the group's time and not the caller's, because a deadline that passes ends
/// the new world.
bool SharedGroup::settle_votes() {
  const std::lock_guard once(settling_);
  if (settled_) return true;
  Votes& votes = world_->votes();
  Votes::Told own;
  {
    const std::lock_guard lock(votes.mutex);
    own = votes.tell();
  }
  std::vector<Votes::Told> all(static_cast<std::size_t>(options().size));
  const TensorView gathered{all.data(), DType::i64, all.size() * own.size()};
  if (!run_unless_failed({}, make_all_gather({own.data(), DType::i64, own.size()}, gathered, options()))) return false;
  if (const int rank = Votes::blame(all); rank >= 0)
    fail_world({Errc::protocol_error,
                "rank " + std::to_string(rank) + " tells of " + std::to_string(all[static_cast<std::size_t>(rank)][0]) +
                    " calls of agree(), which cannot be",
                rank});
  const std::lock_guard lock(votes.mutex);
  votes.settle(all, epoch());
  settled_ = true;
  return true;
}

void SharedGroup::refuse_unless_whole_world(const char* call) const {
  if (&engine_ != &core_.group()) refuse(std::string(call) + " is for the group of all ranks, not for one that split() made");
}

bool SharedGroup::agree(bool mine, const CallOptions& call) { return agree(mine, call, {}); }

bool SharedGroup::agree(bool mine, const CallOptions& call, std::span<std::int32_t> least) {
  refuse_unless_whole_world("agree()");
  if (options().size == 1 && !world_->elastic()) return mine;
  refuse_unless_elastic(*world_);
  driver_.check();
  const TraceSpan span("agree", SpanKind::wait);
  Votes& votes = world_->votes();
  const std::unique_lock one_at_a_time(agreeing_, std::try_to_lock);
  if (!one_at_a_time) refuse("another thread is in agree(); one at a time may call it");
  {
    const std::lock_guard lock(votes.mutex);
    // The others have settled this call without this rank.
    if (votes.epoch() > epoch()) return false;
    votes.call(mine);
  }
  try {
    std::vector<std::int32_t> all{mine ? 1 : 0};
    all.insert(all.end(), least.begin(), least.end());
    if (run_unless_failed(call, make_all_reduce(ReduceOp::min, ConstTensorView(all), TensorView(all), 1, options()))) {
      std::copy(all.begin() + 1, all.end(), least.begin());
      const std::lock_guard lock(votes.mutex);
      votes.set_result(all[0] != 0);
    } else {
      std::vector<int> before;
      std::uint64_t lineage = 0;
      (void)reform_world(call, before, lineage);
    }
  } catch (...) {
    const std::lock_guard lock(votes.mutex);
    votes.withdraw();
    throw;
  }
  const std::lock_guard lock(votes.mutex);
  return votes.answer();
}

/// Runs a collective in a stream that programs cannot use. Returns false where the world has failed, but not by this rank's interruption.
bool SharedGroup::run_unless_failed(const CallOptions& call, Result<CollectiveTask> task) {
  const int before = interruptions();
  try {
    run_own(call, std::move(task));
    return true;
  } catch (const Error&) {
    if (world_has_failed() && interruptions() == before) return false;
    throw;
  }
}

Status SharedGroup::world_failure() {
  Status failure;
  driver().run([&] { failure = core_.failure(); });
  return failure;
}

void SharedGroup::revoke() {
  refuse_unless_elastic(*world_);
  driver().run([&] { core_.revoke(); });
}

void SharedGroup::leave() {
  driver_.check();
  drop_growth();
  if (world_->door()) world_->door()->shut();
  world_->leave();
}

}  // namespace ringlet::native
