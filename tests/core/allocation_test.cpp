#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <ringlet/optimizers.hpp>

#include "core/engine/requests.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/secure_link.hpp"
#include "tests/core/allocation_count.hpp"

using namespace ringlet;

namespace {

/// A loop that runs deferred tasks, but whose timers never fire.
class StillLoop final : public EventLoop {
 public:
  Instant now() const override { return {}; }
  void defer(Task task) override { tasks_.push_back(std::move(task)); }
  TimerId after(Duration, Task) override { return ++timers_; }
  void cancel(TimerId) override {}
  bool run_one() {
    if (tasks_.empty()) return false;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
    return true;
  }

 private:
  std::deque<Task> tasks_;
  TimerId timers_ = 0;
};

/// One end of a pipe in memory without a buffer: bytes that one end sends are copied straight to where the other end receives them.
class PipeLink final : public Link {
 public:
  void connect(PipeLink& other) { other_ = &other; }
  void start(LinkUser& user) override { user_ = &user; }
  void wake() override { awake_ = true; }
  void finish_sending() override {}
  std::string peer_name() const override { return "pipe"; }

  bool move_some() {
    if (!awake_) return false;
    const auto parts = user_->to_send();
    const auto part = std::find_if(parts.begin(), parts.end(), [](const ConstBytes& bytes) { return !bytes.empty(); });
    if (part == parts.end()) {
      awake_ = false;
      return false;
    }
    std::size_t moved = 0;
    for (const Bytes& place : other_->user_->to_receive()) {
      const std::size_t bytes = std::min(place.size(), part->size() - moved);
      if (bytes > 0) std::memcpy(place.data(), part->data() + moved, bytes);
      moved += bytes;
    }
    if (moved == 0) return false;
    user_->sent(moved);
    other_->user_->received(moved);
    return true;
  }

 private:
  LinkUser* user_ = nullptr;
  PipeLink* other_ = nullptr;
  bool awake_ = false;
};

/// A cipher that moves bytes as others do, but does not encrypt them.
class OpenCipher final : public Cipher {
 public:
  void seal(std::uint64_t, ConstBytes, std::span<const ConstBytes> plain, Bytes sealed) override {
    for (const ConstBytes part : plain) {
      std::copy(part.begin(), part.end(), sealed.begin());
      sealed = sealed.subspan(part.size());
    }
    std::fill(sealed.begin(), sealed.end(), std::byte{});
  }
  bool open(std::uint64_t, ConstBytes, ConstBytes sealed, std::span<const Bytes> plain) override {
    for (const Bytes part : plain) {
      if (part.data() != sealed.data()) std::copy_n(sealed.begin(), part.size(), part.begin());
      sealed = sealed.subspan(part.size());
    }
    return true;
  }
  void set_key(const Key&) override {}
};

class IgnoringOwner final : public SessionOwner {
 public:
  PayloadSink* on_frame(Session&, const FrameHeader&) override { return nullptr; }
  void on_session_failed(Session&, const Status&) override {}
  void on_session_ended(Session&) override {}
};

/// Three worlds that are joined by pipes.
class PipeGroup {
 public:
  static constexpr int kSize = 3;

  PipeGroup(const WorldOptions& options, bool encrypts) {
    for (int rank = 0; rank < kSize; ++rank) {
      WorldOptions own = options;
      own.rank = rank;
      own.size = kSize;
      own.kernels = simd::find("");
      worlds_.push_back(std::make_unique<World>(loop_, own));
    }
    for (int rank = 0; rank < kSize; ++rank) {
      for (int peer = 0; peer < rank; ++peer) {
        auto one = std::make_unique<PipeLink>();
        auto other = std::make_unique<PipeLink>();
        one->connect(*other);
        other->connect(*one);
        links_.push_back(one.get());
        links_.push_back(other.get());
        adopt(rank, peer, std::move(one), options, encrypts);
        adopt(peer, rank, std::move(other), options, encrypts);
      }
    }
  }

  /// Returns the allocations of one all-reduce on all ranks, from its start to its end. With `last_is_late` the last rank starts it when
  /// the others can do no more without it.
  test::Allocations allocations_of_sum(std::size_t count, bool last_is_late = false) {
    for (auto& own : values_) own.assign(count, 1.0F);
    const test::Allocations before = test::allocations_so_far();
    int done = 0;
    for (std::size_t rank = 0; rank < kSize; ++rank) {
      if (last_is_late && rank + 1 == kSize) move_all();
      auto task = make_all_reduce(ReduceOp::sum, values_[rank], values_[rank], 1, worlds_[rank]->options());
      task.value().completion = [&done](const Status& status) { done += status.ok() ? 1 : 100; };
      worlds_[rank]->group().start(0, std::move(task).value());
    }
    move_all();
    const test::Allocations of_run = test::allocations_so_far() - before;
    CHECK(done == kSize);
    for (const auto& own : values_) CHECK(own == std::vector<float>(count, 3.0F));
    return of_run;
  }

 private:
  void move_all() {
    for (bool progress = true; progress;) {
      progress = loop_.run_one();
      for (PipeLink* link : links_) progress |= link->move_some();
    }
  }

  void adopt(int rank, int peer, std::unique_ptr<Link> link, const WorldOptions& options, bool encrypts) {
    if (encrypts)
      link = std::make_unique<SecureLink>(loop_, std::move(link), CipherSuite::chacha20_poly1305, std::make_unique<OpenCipher>(),
                                          std::make_unique<OpenCipher>());
    worlds_[static_cast<std::size_t>(rank)]->adopt(std::make_unique<Session>(std::move(link), loop_, owner_, options.session), peer);
  }

  StillLoop loop_;
  IgnoringOwner owner_;
  std::vector<std::unique_ptr<World>> worlds_;
  std::vector<PipeLink*> links_;
  std::array<std::vector<float>, kSize> values_;
};

}  // namespace

TEST_CASE("the allocations of a large all-reduce do not depend on the number of segments") {
  WorldOptions options;
  options.segment_bytes = 16 << 10;
  options.guests = GENERATE(0, 1, 2);
  options.placement.policy = PlacementPolicy::hub;
  const bool encrypts = GENERATE(false, true);
  CAPTURE(options.guests, encrypts);
  PipeGroup group(options, encrypts);
  constexpr std::size_t kFew = 100'000;     // about 9 segments per part
  constexpr std::size_t kMany = 3'000'000;  // about 250
  for (const std::size_t warm_up : {kMany, kFew, kMany}) group.allocations_of_sum(warm_up);
  // A queue of operations takes a new block of memory now and then, so the least of a few runs is the steady state.
  std::size_t few = SIZE_MAX;
  std::size_t many = SIZE_MAX;
  for (int round = 0; round < 10; ++round) {
    few = std::min(few, group.allocations_of_sum(kFew).all);
    many = std::min(many, group.allocations_of_sum(kMany).all);
  }
  CHECK(few == many);
  CHECK(many < 50);
}

TEST_CASE("what comes before its operation has started is kept in the memory of what came before") {
  const std::size_t count = GENERATE(as<std::size_t>{}, 10'000, 40'000);  // in parts of 13 and 53 KB
  PipeGroup group({}, false);
  const std::size_t first = group.allocations_of_sum(count, true).large;
  CHECK(first > 0);
  for (int round = 0; round < 5; ++round) CHECK(group.allocations_of_sum(count, true).large == 0);
}

TEST_CASE("an optimizer's step takes memory the first time only") {
  std::vector<float> weight(3'000), bias(10);
  std::vector<BFloat16> weight_gradient(3'000), bias_gradient(10);
  const Tree parameters{{"weight", weight}, {"bias", bias}}, gradients{{"weight", weight_gradient}, {"bias", bias_gradient}};
  AdamW optimizer(0.1, {.bias_correction = true});
  optimizer.apply_gradients(gradients, parameters);
  const std::size_t before = test::allocations_so_far().all;
  clip_grad_norm(gradients, 1.0);
  for (int step = 0; step < 5; ++step) optimizer.apply_gradients(gradients, parameters);
  CHECK(test::allocations_so_far().all == before);
}
