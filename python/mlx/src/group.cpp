#include "group.hpp"

#include <Python.h>
#include <mlx/array.h>
#include <mlx/backend/cpu/encoder.h>
#include <mlx/utils.h>
#include <ringlet/c/dtypes.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interpreter.hpp"

namespace mx = mlx::core;

namespace ringlet_mlx {
namespace {

/// The group's stream on which it is split, so that splitting is in no order with operations that still run. It is the last one.
constexpr int kSplitStream = 1023;

/// More messages than these wait for the first one.
constexpr std::size_t kMostMessages = 1024;

[[noreturn]] void throw_error(const ringlet_share& share) {
  const ringlet_share_error error = share.calls->error();
  std::string text = std::string("ringlet.") + error.name;
  if (error.rank >= 0) text += " (rank " + std::to_string(error.rank) + ")";
  throw std::runtime_error(text + ": " + error.text);
}

void check(const ringlet_share& share, int result) {
  if (result == RINGLET_SHARE_FAILED) throw_error(share);
}

int dtype_of(mx::Dtype dtype) {
  switch (dtype.val()) {
    case mx::Dtype::Val::bool_:
      return RINGLET_BOOL;
    case mx::Dtype::Val::uint8:
      return RINGLET_U8;
    case mx::Dtype::Val::uint16:
      return RINGLET_U16;
    case mx::Dtype::Val::uint32:
      return RINGLET_U32;
    case mx::Dtype::Val::uint64:
      return RINGLET_U64;
    case mx::Dtype::Val::int8:
      return RINGLET_I8;
    case mx::Dtype::Val::int16:
      return RINGLET_I16;
    case mx::Dtype::Val::int32:
      return RINGLET_I32;
    case mx::Dtype::Val::int64:
      return RINGLET_I64;
    case mx::Dtype::Val::float16:
      return RINGLET_F16;
    case mx::Dtype::Val::bfloat16:
      return RINGLET_BF16;
    case mx::Dtype::Val::float32:
      return RINGLET_F32;
    case mx::Dtype::Val::float64:
      return RINGLET_F64;
    case mx::Dtype::Val::complex64:
      return RINGLET_COMPLEX64;
  }
  throw std::invalid_argument("Ringlet has no dtype for this one of MLX's");
}

ringlet_elements elements_of(const mx::array& array) {
  return {const_cast<char*>(array.data<char>()), dtype_of(array.dtype()), static_cast<std::int64_t>(array.size())};
}

}  // namespace

void ShareFree::operator()(ringlet_share* share) const noexcept {
  const WithoutLock unlocked;
  share->calls->free(share);
}

Share copy_of(ringlet_share& share) {
  ringlet_share* copy = nullptr;
  check(share, share.calls->copy(&share, &copy));
  return Share(copy);
}

/// A message that is on its way, and its elements.
class Message {
 public:
  /// `count` counts the messages that there are, and outlives this one.
  Message(const ringlet_share& share, ringlet_sending* sending, std::shared_ptr<mx::array::Data> data, std::atomic<int>& count)
      : calls_(share.calls), sending_(sending), data_(std::move(data)), count_(count) {
    ++count_;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() {
    const WithoutLock unlocked;
    calls_->sending_free(sending_);
    --count_;
  }

  /// Waits at most for `timeout`. Returns whether it has ended, and sets `*result` then.
  bool wait(std::chrono::milliseconds timeout, int* result) {
    std::int32_t ended = 0;
    *result = calls_->sending_wait(sending_, timeout.count(), &ended);
    return ended != 0;
  }

 private:
  const ringlet_share_calls* calls_;
  ringlet_sending* sending_;
  std::shared_ptr<mx::array::Data> data_;  // MLX then does not use the memory for something else
  std::atomic<int>& count_;
};

/// What a group's operations need on their threads.
struct Calls {
  explicit Calls(Share own) : share(std::move(own)) {}

  /// The group's number of a stream of MLX's.
  int stream_of(mx::Stream stream) {
    const std::lock_guard lock(mutex);
    const auto place = streams.try_emplace(stream.index, static_cast<int>(streams.size())).first;
    if (place->second >= kSplitStream)
      throw std::runtime_error("the group was used with more than 1023 streams of MLX's; use some of them again");
    return place->second;
  }

  /// Keeps a message until it has ended.
  void add(std::unique_ptr<Message> message) {
    std::unique_lock lock(mutex);
    messages.push_back(std::move(message));
    if (messages.size() <= kMostMessages) return;
    const std::unique_ptr<Message> first = std::move(messages.front());
    messages.pop_front();
    lock.unlock();
    finish(*first, std::chrono::hours(24));
  }
  /// Frees the messages that have ended, waiting at most for `timeout` for each. Throws the error of one of them.
  void finish_messages(std::chrono::milliseconds timeout) {
    std::list<std::unique_ptr<Message>> mine;
    {
      const std::lock_guard lock(mutex);
      mine.swap(messages);
    }
    std::string error;
    for (auto place = mine.begin(); place != mine.end();) {
      try {
        place = finish(**place, timeout) ? mine.erase(place) : std::next(place);
      } catch (const std::runtime_error& failed) {
        if (error.empty()) error = failed.what();
        place = mine.erase(place);
      }
    }
    {
      const std::lock_guard lock(mutex);
      messages.splice(messages.begin(), mine);
    }
    if (!error.empty()) throw std::runtime_error(error);
  }
  bool finish(Message& message, std::chrono::milliseconds timeout) const {
    int result = RINGLET_SHARE_OK;
    if (!message.wait(timeout, &result)) return false;
    check(*share, result);
    return true;
  }

  const Share share;
  std::atomic<int> message_count = 0;            // also of those that a thread is about to free
  std::mutex mutex;                              // of what follows
  std::unordered_map<int, int> streams;          // by the index of MLX's stream
  std::list<std::unique_ptr<Message>> messages;  // oldest first
};

namespace {

/// The groups of this process. They are never destroyed: MLX's threads may still run when the process ends.
struct AllCalls {
  std::mutex mutex;
  std::vector<std::weak_ptr<Calls>> calls;
};

AllCalls& all_calls() {
  static auto* const all = new AllCalls;
  return *all;
}

std::shared_ptr<Calls> register_calls(Share share) {
  auto calls = std::make_shared<Calls>(std::move(share));
  AllCalls& all = all_calls();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.calls, [](const std::weak_ptr<Calls>& other) { return other.expired(); });
  all.calls.push_back(calls);
  return calls;
}

}  // namespace

Group::Group(Share share) : calls_(register_calls(std::move(share))) {}

mx::Stream Group::communication_stream(mx::StreamOrDevice s) {
  const mx::Stream stream = mx::to_stream(s, mx::Device::cpu);
  if (stream.device != mx::Device::cpu) throw std::invalid_argument("Ringlet's operations run on the CPU; give stream=mx.cpu");
  calls_->stream_of(stream);
  return stream;
}

int Group::rank() { return calls_->share->calls->rank(calls_->share.get()); }

int Group::size() { return calls_->share->calls->size(calls_->share.get()); }

std::shared_ptr<mx::distributed::detail::GroupImpl> Group::split(int color, int key) {
  ringlet_share* part = nullptr;
  {
    const WithLock locked;
    ringlet_share* const share = calls_->share.get();
    const int result = share->calls->split(share, color, key, kSplitStream, &part);
    if (result == RINGLET_SHARE_RAISED) throw_raised();
    check(*share, result);
  }
  if (!part) throw std::invalid_argument("the color is " + std::to_string(color) + ", so this rank is in none of the new groups");
  return std::make_shared<Group>(Share(part));
}

template <class Operation>
void Group::dispatch(mx::Stream stream, Operation operation) {
  mx::cpu::get_command_encoder(stream).dispatch([calls = calls_, number = calls_->stream_of(stream), operation = std::move(operation)] {
    operation(*calls, number);
    // The other ranks have had this one's part by now, whatever became of the messages.
    if (calls->message_count > 0) calls->finish_messages(std::chrono::milliseconds{0});
  });
}

void Group::reduce(int op, const mx::array& input, mx::array& output, mx::Stream stream) {
  dispatch(stream, [op, from = elements_of(input), to = elements_of(output)](Calls& calls, int number) {
    check(*calls.share, calls.share->calls->all_reduce(calls.share.get(), op, from, to, number));
  });
}

void Group::all_sum(const mx::array& input, mx::array& output, mx::Stream stream) { reduce(RINGLET_SUM, input, output, stream); }
void Group::all_max(const mx::array& input, mx::array& output, mx::Stream stream) { reduce(RINGLET_MAX, input, output, stream); }
void Group::all_min(const mx::array& input, mx::array& output, mx::Stream stream) { reduce(RINGLET_MIN, input, output, stream); }

void Group::all_gather(const mx::array& input, mx::array& output, mx::Stream stream) {
  dispatch(stream, [from = elements_of(input), to = elements_of(output)](Calls& calls, int number) {
    check(*calls.share, calls.share->calls->all_gather(calls.share.get(), from, to, number));
  });
}

void Group::sum_scatter(const mx::array& input, mx::array& output, mx::Stream stream) {
  dispatch(stream, [from = elements_of(input), to = elements_of(output)](Calls& calls, int number) {
    check(*calls.share, calls.share->calls->reduce_scatter(calls.share.get(), RINGLET_SUM, from, to, number));
  });
}

void Group::send(const mx::array& input, int destination, mx::Stream stream) {
  dispatch(stream, [from = elements_of(input), data = input.data_shared_ptr(), destination](Calls& calls, int number) {
    ringlet_sending* sending = nullptr;
    check(*calls.share, calls.share->calls->send(calls.share.get(), from, destination, number, &sending));
    calls.add(std::make_unique<Message>(*calls.share, sending, data, calls.message_count));
  });
}

void Group::recv(mx::array& output, int source, mx::Stream stream) {
  dispatch(stream, [to = elements_of(output), source](Calls& calls, int number) {
    check(*calls.share, calls.share->calls->recv(calls.share.get(), to, source, number));
  });
}

bool await_messages(std::chrono::milliseconds timeout) {
  std::vector<std::shared_ptr<Calls>> all;
  {
    const std::lock_guard lock(all_calls().mutex);
    for (const std::weak_ptr<Calls>& calls : all_calls().calls)
      if (auto alive = calls.lock()) all.push_back(std::move(alive));
  }
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (const auto& calls : all)
    while (calls->message_count > 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      try {
        calls->finish_messages(std::min(left, std::chrono::milliseconds{100}));
      } catch (const std::runtime_error&) {
        continue;  // a message that has failed has ended, too
      }
    }
  return true;
}

}  // namespace ringlet_mlx
