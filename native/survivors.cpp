#include "native/survivors.hpp"

#include <algorithm>
#include <numeric>
#include <ringlet/trace.hpp>
#include <string>

#include "core/base/refuse.hpp"
#include "core/engine/requests.hpp"
#include "native/duration.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds until(Clock::time_point deadline) {
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()), std::chrono::milliseconds(1));
}

}  // namespace

Succession Survivors::await_succession(std::chrono::milliseconds timeout) {
  struct Wait {
    DoneFlag done;
    Succession found;
    bool interrupted = false;
  };
  const auto wait = std::make_shared<Wait>();
  if (!group_.world_has_failed())
    refuse("the world has not failed; reform() follows an error that ended it, such as PeerLost, or revoke()");
  group_.driver().run([&] {
    group_.world()->epochs().when_succeeded(group_.core(), [wait, &driver = group_.driver()](const Succession& succession) {
      if (wait->done.is_set()) return;
      wait->found = succession;
      driver.set(wait->done);
    });
  });
  const Interruption interruption{group_.interruption().is_wanted, [wait, &driver = group_.driver()] {
                                    if (wait->done.is_set()) return;
                                    wait->interrupted = true;
                                    driver.set(wait->done);
                                  }};
  if (!group_.driver().wait(wait->done, duration_of(timeout), interruption)) {
    group_.driver().check();
    throw_if_failed({Errc::timed_out, "rank " + std::to_string(group_.world_rank()) + " has waited for " + std::to_string(timeout.count()) +
                                          " ms for a world without the lost ranks; too few of the others can be reached"});
  }
  if (wait->interrupted)
    throw_if_failed(
        {Errc::cancelled, "rank " + std::to_string(group_.world_rank()) + " was interrupted in reform(), which may be called again"});
  if (wait->found.world == nullptr) {
    group_.world()->be_left_out();
    throw_if_failed({Errc::peer_lost,
                     "the others have gone on without rank " + std::to_string(group_.world_rank()) + ", which they did not hear any more",
                     group_.world_rank()});
  }
  return wait->found;
}

std::shared_ptr<SharedGroup> Survivors::reform(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage) {
  group_.driver().check();
  // The world that was being formed has the lost ranks in it.
  group_.growth().drop();
  auto last = follow_losses(call, before, lineage);
  const std::lock_guard lock(following_);
  next_.reset();
  return last;
}

std::shared_ptr<SharedGroup> Survivors::follow_losses(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage) {
  group_.refuse_unless_elastic();
  Duration limit = group_.options().operation_timeout;
  throw_if_failed(check_call(call, limit));
  const auto deadline = Clock::now() + std::chrono::nanoseconds(limit.nanoseconds);
  before.resize(static_cast<std::size_t>(group_.world_size()));
  std::iota(before.begin(), before.end(), 0);
  std::shared_ptr<SharedGroup> last = group_.shared_from_this();
  while (true) {
    const Succession next = last->survivors().await_succession(until(deadline));
    std::vector<int> members;
    for (const int rank : next.members) members.push_back(before[static_cast<std::size_t>(rank)]);
    before = std::move(members);
    lineage = next.lineage;
    last = last->survivors().follow(*next.world);
    if (last->survivors().settle_votes()) return last;
  }
}

/// The group of the next epoch stays until reform() has found the last one, however often ranks were lost since agree() came here.
std::shared_ptr<SharedGroup> Survivors::follow(ringlet::World& next) {
  auto group = NativeWorld::group_of(group_.world(), next);
  const std::lock_guard lock(following_);
  next_ = group;
  return group;
}

/// Returns false where another rank was lost meanwhile. It has the group's time and not the caller's, because a deadline that passes ends
/// the new world.
bool Survivors::settle_votes() {
  const std::lock_guard once(settling_);
  if (settled_) return true;
  Votes& votes = group_.world()->votes();
  Votes::Told own;
  {
    const std::lock_guard lock(votes.mutex);
    own = votes.tell();
  }
  std::vector<Votes::Told> all(static_cast<std::size_t>(group_.options().size));
  const TensorView gathered{all.data(), DType::i64, all.size() * own.size()};
  if (!group_.run_unless_failed(
          {}, for_purpose(Purpose::agreement, make_all_gather({own.data(), DType::i64, own.size()}, gathered, group_.options()))))
    return false;
  if (const int rank = Votes::blame(all); rank >= 0)
    group_.fail_for_violation({Errc::protocol_error,
                               "rank " + std::to_string(rank) + " tells of " + std::to_string(all[static_cast<std::size_t>(rank)][0]) +
                                   " calls of agree(), which cannot be",
                               rank});
  const std::lock_guard lock(votes.mutex);
  votes.settle(all, group_.epoch());
  settled_ = true;
  return true;
}

bool Survivors::agree(bool mine, const CallOptions& call, std::span<std::int32_t> least) {
  group_.refuse_unless_whole_world("agree()");
  if (group_.options().size == 1 && !group_.elastic()) return mine;
  group_.refuse_unless_elastic();
  group_.driver().check();
  const TraceSpan span("agree", SpanKind::wait);
  Votes& votes = group_.world()->votes();
  const std::unique_lock one_at_a_time(agreeing_, std::try_to_lock);
  if (!one_at_a_time) refuse("another thread is in agree(); one at a time may call it");
  {
    const std::lock_guard lock(votes.mutex);
    // The others have settled this call without this rank.
    if (votes.epoch() > group_.epoch()) return false;
    votes.call(mine);
  }
  try {
    std::vector<std::int32_t> all{mine ? 1 : 0};
    all.insert(all.end(), least.begin(), least.end());
    if (group_.run_unless_failed(call, for_purpose(Purpose::agreement, make_all_reduce(ReduceOp::min, ConstTensorView(all), TensorView(all),
                                                                                       1, group_.options())))) {
      std::copy(all.begin() + 1, all.end(), least.begin());
      if (!std::exchange(trusts_joined_, true)) group_.driver().run([this] { group_.core().trust_joined(); });
      const std::lock_guard lock(votes.mutex);
      votes.set_result(all[0] != 0);
    } else {
      std::vector<int> before;
      std::uint64_t lineage = 0;
      (void)follow_losses(call, before, lineage);
    }
  } catch (...) {
    const std::lock_guard lock(votes.mutex);
    votes.withdraw();
    throw;
  }
  const std::lock_guard lock(votes.mutex);
  return votes.answer();
}

}  // namespace ringlet::native
