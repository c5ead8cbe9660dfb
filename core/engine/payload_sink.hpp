#pragma once

#include <vector>

#include "core/base/bytes.hpp"

namespace ringlet {

/// Where a frame's payload goes.
class PayloadSink {
 public:
  /// Memory into which the next bytes may be written directly; empty where they have to be passed to consume().
  virtual Bytes direct() = 0;
  /// `count` bytes have been put into direct().
  virtual void received_direct(std::size_t count) = 0;
  /// Takes as many of `bytes` as possible, at least one element if there is a whole one. Returns the number of bytes that it took.
  virtual std::size_t consume(ConstBytes bytes) = 0;
  /// Called when the whole payload has been taken.
  virtual void frame_ended() = 0;

 protected:
  ~PayloadSink() = default;
};

/// A sink that takes all bytes through consume().
class BufferedSink : public PayloadSink {
 public:
  Bytes direct() final { return {}; }
  void received_direct(std::size_t) final {}

 protected:
  ~BufferedSink() = default;
};

/// Discards the payload.
class DiscardSink final : public BufferedSink {
 public:
  std::size_t consume(ConstBytes bytes) override { return bytes.size(); }
  void frame_ended() override {}
};

/// Collects a whole payload, which may come in any number of pieces. Its memory is used again for the next payload.
class GatheringSink : public BufferedSink {
 public:
  /// A new frame begins.
  void begin() { bytes_.clear(); }
  std::size_t consume(ConstBytes bytes) final {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return bytes.size();
  }

 protected:
  ~GatheringSink() = default;
  ConstBytes gathered() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace ringlet
