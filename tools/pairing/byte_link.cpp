#include "tools/pairing/byte_link.hpp"

#include <utility>

namespace ringlet::pairing {

ByteLink::ByteLink(std::unique_ptr<Link> link, OnBytes on_bytes, OnEnd on_end)
    : on_bytes_(std::move(on_bytes)), on_end_(std::move(on_end)), link_(std::move(link)) {
  link_->start(*this);
}

void ByteLink::send(std::string bytes) {
  if (bytes.empty()) return;
  // The append may move bytes that are lent to the link, so the link gives them back first.
  outgoing_.erase(0, link_->recall());
  outgoing_ += bytes;
  link_->wake();
}

void ByteLink::finish() { link_->finish_sending(); }

std::span<const ConstBytes> ByteLink::to_send() {
  send_part_ = std::as_bytes(std::span(outgoing_));
  return {&send_part_, outgoing_.empty() ? 0U : 1U};
}

std::span<const Bytes> ByteLink::to_receive() { return {&receive_part_, 1}; }

void ByteLink::received(std::size_t bytes) {
  // The callback may destroy this object, so it and the bytes are copied.
  const OnBytes on_bytes = on_bytes_;
  const std::string copy(reinterpret_cast<const char*>(incoming_.data()), bytes);
  on_bytes(std::as_bytes(std::span(copy)));
}

void ByteLink::tell_end() {
  if (const OnEnd on_end = std::exchange(on_end_, nullptr)) on_end();
}

}  // namespace ringlet::pairing
