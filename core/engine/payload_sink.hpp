#pragma once

#include <vector>

#include "core/base/bytes.hpp"

namespace ringlet {

/// Where a frame's payload goes.
class PayloadSink {
 public:
  /// Memory that wants the next bytes as they are; empty: hand them to consume().
  virtual Bytes direct() = 0;
  /// `count` bytes have been put into direct().
  virtual void received_direct(std::size_t count) = 0;
  /// Takes what it can of `bytes`, at least one element if there is one; returns how many.
  virtual std::size_t consume(ConstBytes bytes) = 0;
  /// The whole payload has been taken.
  virtual void frame_ended() = 0;

 protected:
  ~PayloadSink() = default;
};

/// A sink without memory of its own for the bytes to go to.
class BufferedSink : public PayloadSink {
 public:
  Bytes direct() final { return {}; }
  void received_direct(std::size_t) final {}

 protected:
  ~BufferedSink() = default;
};

/// Throws the payload away.
class DiscardSink final : public BufferedSink {
 public:
  std::size_t consume(ConstBytes bytes) override { return bytes.size(); }
  void frame_ended() override {}
};

/// Collects a whole payload, in however many pieces it comes. Keeps its memory for the next one.
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
