#include "group_share.h"

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <ringlet/error.hpp>
#include <string>
#include <utility>

#include "errors.hpp"
#include "group.hpp"
#include "interruptible.hpp"
#include "lock.hpp"

struct ringlet_sending {
  ringlet::Work work;
};

namespace ringlet::python {
namespace {

struct Share : ringlet_share {
  explicit Share(Group shared);
  Group group;
};

Group& group_of(ringlet_share* share) { return static_cast<Share*>(share)->group; }
const Group& group_of(const ringlet_share* share) { return static_cast<const Share*>(share)->group; }

thread_local Status last_failure;

int32_t failed(Errc code, const char* text, int rank) noexcept {
  try {
    last_failure = Status(code, text, rank);
  } catch (const std::bad_alloc&) {
    last_failure = Status(code, std::string(), rank);
  }
  return RINGLET_SHARE_FAILED;
}

/// The body of a C function: no exception leaves it.
template <class Call>
int32_t share_guarded(Call call) noexcept {
  try {
    call();
    return RINGLET_SHARE_OK;
  } catch (const Error& error) {
    return failed(error.status().code(), error.status().text().c_str(), error.status().rank());
  } catch (nb::python_error& raised) {
    raised.restore();
    return RINGLET_SHARE_RAISED;
  } catch (const std::exception& error) {
    return failed(Errc::ok, error.what(), -1);
  }
}

ringlet_share_error share_error() noexcept { return {class_of(last_failure.code()), last_failure.text().c_str(), last_failure.rank()}; }

TensorView written(const ringlet_elements& elements) {
  return {elements.data, static_cast<DType>(elements.dtype), static_cast<std::size_t>(elements.count)};
}
ConstTensorView read(const ringlet_elements& elements) { return written(elements); }

int32_t share_copy(ringlet_share* share, ringlet_share** copy) noexcept {
  return share_guarded([&] { *copy = new Share(group_of(share)); });
}

void share_free(ringlet_share* share) noexcept { delete static_cast<Share*>(share); }

int32_t share_rank(const ringlet_share* share) noexcept { return group_of(share).rank(); }

int32_t share_size(const ringlet_share* share) noexcept { return group_of(share).size(); }

int32_t share_split(ringlet_share* share, int32_t color, int32_t key, int32_t stream, ringlet_share** part) noexcept {
  return share_guarded([&] {
    std::optional<Group> group = interruptible(
        [whole = group_of(share), color, key, options = options_of(stream, std::nullopt)] { return whole.split(color, key, options); });
    *part = group ? new Share(std::move(*group)) : nullptr;
  });
}

int32_t share_all_reduce(ringlet_share* share, int32_t op, ringlet_elements input, ringlet_elements output, int32_t stream) noexcept {
  return share_guarded(
      [&] { group_of(share).all_reduce(static_cast<ReduceOp>(op), read(input), written(output), options_of(stream, std::nullopt)); });
}

int32_t share_all_gather(ringlet_share* share, ringlet_elements input, ringlet_elements output, int32_t stream) noexcept {
  return share_guarded([&] { group_of(share).all_gather(read(input), written(output), options_of(stream, std::nullopt)); });
}

int32_t share_reduce_scatter(ringlet_share* share, int32_t op, ringlet_elements input, ringlet_elements output, int32_t stream) noexcept {
  return share_guarded(
      [&] { group_of(share).reduce_scatter(static_cast<ReduceOp>(op), read(input), written(output), options_of(stream, std::nullopt)); });
}

int32_t share_recv(ringlet_share* share, ringlet_elements output, int32_t source, int32_t stream) noexcept {
  return share_guarded([&] { group_of(share).recv(written(output), source, options_of(stream, std::nullopt)); });
}

int32_t share_send(ringlet_share* share, ringlet_elements input, int32_t destination, int32_t stream, ringlet_sending** sending) noexcept {
  return share_guarded([&] {
    auto started = std::make_unique<ringlet_sending>();
    started->work = group_of(share).send_async(read(input), destination, options_of(stream, std::nullopt));
    *sending = started.release();
  });
}

int32_t share_sending_wait(ringlet_sending* sending, int64_t timeout_ms, int32_t* ended) noexcept {
  return share_guarded([&] {
    *ended = 1;
    if (!sending->work.wait_for(std::chrono::milliseconds(timeout_ms))) *ended = 0;
  });
}

void share_sending_free(ringlet_sending* sending) noexcept { delete sending; }

constexpr ringlet_share_calls kCalls{
    .error = share_error,
    .copy = share_copy,
    .free = share_free,
    .rank = share_rank,
    .size = share_size,
    .split = share_split,
    .all_reduce = share_all_reduce,
    .all_gather = share_all_gather,
    .reduce_scatter = share_reduce_scatter,
    .recv = share_recv,
    .send = share_send,
    .sending_wait = share_sending_wait,
    .sending_free = share_sending_free,
};

Share::Share(Group shared) : ringlet_share{&kCalls}, group(std::move(shared)) {}

}  // namespace

nb::capsule share_of(GroupHandle& handle) {
  auto share = std::make_unique<Share>(handle.get());
  nb::capsule capsule(static_cast<ringlet_share*>(share.get()), RINGLET_SHARE_CAPSULE, [](void* owned) noexcept {
    const WithoutLock unlocked;
    share_free(static_cast<ringlet_share*>(owned));
  });
  share.release();
  return capsule;
}

}  // namespace ringlet::python
