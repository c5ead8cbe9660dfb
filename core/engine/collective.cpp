#include "core/engine/collective.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/base/check.hpp"
#include "core/plan/make_plan.hpp"

namespace ringlet {

namespace {

/// Combining waits for this many bytes, or for all, so that kernels run over pieces worth their call.
constexpr std::size_t kCombineBytes = 32 << 10;
/// Of the ranks that it waits for, so many are told to others.
constexpr std::size_t kToldRanks = 16;
/// Elements combined at a time: the f32 accumulators of a block stay in the first-level cache.
constexpr std::size_t kBlockElements = 1024;

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace

// --- Collective ---

void Collective::start(std::uint16_t stream, std::uint64_t sequence, const CollectiveTask& task) {
  RINGLET_CHECK(!running_);
  const WorldOptions& options = group_.options();
  running_ = true;
  call_ = task.call;
  stream_ = stream;
  sequence_ = sequence;
  input_ = task.input;
  output_ = task.output;
  const simd::Kernels& kernels = *options.kernels;
  reduce_ = kernels.reduce(call_.dtype, call_.op);
  divide_ = call_.divisor != 1.0 ? kernels.divide(call_.dtype) : nullptr;
  canonical_nan_ = kernels.canonical_nan(call_.dtype);
  make_plan(call_, options.rank, options.size, options.topology, input_.data() == output_.data(), plan_);
  if (scratch_.size() < plan_.scratch_bytes) scratch_.resize(plan_.scratch_bytes);
  progress_.assign(plan_.receives.size() + plan_.combines.size(), {});
  combined_ = 0;
  if (plan_.copy_from.bytes > 0 && readable(plan_.copy_from) != writable(plan_.copy_to))
    std::memcpy(writable(plan_.copy_to), readable(plan_.copy_from), plan_.copy_from.bytes);
  while (lanes_.size() < static_cast<std::size_t>(options.size)) lanes_.emplace_back(*this);
  start_lanes();
}

void Collective::start_lanes() {
  // All records before the first lane: a lane that has started may have given its record to the link.
  records_.clear();
  std::size_t bytes = 0;
  for (const PeerSteps& steps : plan_.peers)
    if (records_.empty() || is_pairwise(call_)) bytes = append_call(call_, steps.peer, records_);
  std::size_t offset = 0;
  for (const PeerSteps& steps : plan_.peers) {
    lane(steps.peer).start(steps, offset, bytes);
    if (is_pairwise(call_)) offset += bytes;
  }
}

Collective::Collective(GroupContext& group, std::function<void()> on_finished)
    : group_(group),
      on_finished_(std::move(on_finished)),
      windows_(static_cast<std::size_t>(group.options().size), EagerWindow(group.options().eager_window_bytes)) {}

Collective::~Collective() {
  for (Lane& part : lanes_) part.withdraw();
}

void Collective::cancel() { running_ = false; }

std::byte* Collective::writable(const Region& region) const {
  std::byte* base = region.buffer == Buffer::output ? output_.data() : const_cast<std::byte*>(scratch_.data());
  return base + region.offset_bytes;
}

const std::byte* Collective::readable(const Region& region) const {
  if (region.buffer == Buffer::input) return input_.data() + region.offset_bytes;
  return writable(region);
}

Collective::Progress Collective::progress(ProgressIndex index) const {
  if (index == kAtOnce) return {SIZE_MAX, true};
  return progress_[static_cast<std::size_t>(index)];
}

Collective::Lane* Collective::find_lane(int peer) {
  if (!running_) return nullptr;
  Lane& found = lane(peer);
  return found.sequence() == sequence_ ? &found : nullptr;
}

const Collective::Lane* Collective::find_lane(int peer) const { return const_cast<Collective*>(this)->find_lane(peer); }

void Collective::on_call(int peer) {
  if (Lane* lane = find_lane(peer)) lane->on_call();
}

bool Collective::has_called(int peer) const {
  const Lane* lane = find_lane(peer);
  return lane != nullptr && lane->called();
}

Result<PayloadSink*> Collective::on_data(int peer, const FrameHeader& header) {
  Lane* lane = find_lane(peer);
  if (lane == nullptr) return Status{Errc::protocol_error, "data for " + describe(call_) + ", which takes none from this rank"};
  Status status = lane->begin_frame(header);
  if (!status.ok()) return status;
  return static_cast<PayloadSink*>(lane);
}

Status Collective::on_early_data(int peer, const FrameHeader& header, ConstBytes payload) {
  auto sink = on_data(peer, header);
  if (!sink.ok()) return sink.status();
  while (!payload.empty()) payload = payload.subspan(sink.value()->consume(payload));
  sink.value()->frame_ended();
  return {};
}

void Collective::on_call_of_ended(int peer, std::uint64_t sequence) {
  windows_[static_cast<std::size_t>(peer)].settle(sequence);
  if (Lane* lane = find_lane(peer)) lane->wake_if_sendable();
}

bool Collective::has_all_of(int peer) const {
  const Lane* lane = find_lane(peer);
  return lane == nullptr || (lane->called() && lane->receives_done());
}

bool Collective::on_peer_left_world(int peer) {
  Lane* lane = find_lane(peer);
  if (lane == nullptr) return true;
  if (!lane->absolve()) return false;
  advance();
  return true;
}

int Collective::waits_for() const {
  int found = -1;
  for (const PeerSteps& steps : plan_.peers) {
    const Lane& waits = lane(steps.peer);
    if (!running_ || (waits.receives_done() && waits.sends_left())) continue;
    if (!waits.called()) return steps.peer;
    if (found < 0 || (lane(found).receives_done() && !waits.receives_done())) found = steps.peer;
  }
  return found;
}

std::string Collective::waiting_for() const {
  std::string text;
  for (const PeerSteps& steps : plan_.peers) {
    const Lane& waits = lane(steps.peer);
    if (!running_ || (waits.receives_done() && waits.sends_left())) continue;
    text += (text.empty() ? "waiting for " : ", ") + group_.members().name_of(steps.peer);
    if (!waits.called())
      text += steps.call_with_first_send ? " (has sent nothing yet)" : " (has not called it)";
    else if (waits.receives_done())
      text += " (does not take what is sent to it)";
    else
      text += " (sent " + std::to_string(waits.received_bytes()) + " of " + std::to_string(waits.expected_bytes()) + " bytes)";
  }
  return text;
}

void Collective::describe_progress(wire::OperationState& state) const {
  if (!running_) return;
  const int first = waits_for();
  if (first >= 0) state.waits_for.push_back(static_cast<std::uint32_t>(group_.members().world_rank(first)));
  for (const PeerSteps& steps : plan_.peers) {
    const Lane& part = lane(steps.peer);
    state.received += part.received_bytes();
    state.to_receive += part.expected_bytes();
    state.sent += part.sent_bytes();
    state.to_send += part.bytes_to_send();
    const bool waits = !part.receives_done() || !part.sends_left();
    if (waits && steps.peer != first && state.waits_for.size() < kToldRanks)
      state.waits_for.push_back(static_cast<std::uint32_t>(group_.members().world_rank(steps.peer)));
  }
}

bool Collective::may_wait_itself(int peer) const {
  const Lane* lane = find_lane(peer);
  return lane != nullptr && lane->may_wait_itself();
}

void Collective::advance() {
  while (combined_ < plan_.combines.size() && run_combine(combined_)) ++combined_;
  bool complete = combined_ == plan_.combines.size();
  for (const PeerSteps& steps : plan_.peers) {
    Lane& part = lane(steps.peer);
    part.wake_if_sendable();
    complete &= part.receives_done() && part.sends_left();
  }
  if (!complete || !running_) return;
  for (const PeerSteps& steps : plan_.peers) lane(steps.peer).leave_window();
  running_ = false;
  on_finished_();
}

bool Collective::sends_have_left() const {
  return std::all_of(plan_.peers.begin(), plan_.peers.end(), [&](const PeerSteps& steps) { return lane(steps.peer).sends_left(); });
}

bool Collective::run_combine(std::size_t index) {
  const Combine& combine = plan_.combines[index];
  Progress& done = progress_[plan_.receives.size() + index];
  if (combine.after_sends && !sends_have_left()) return false;
  std::size_t ready = combine.into.bytes;
  bool all = true;
  for (std::uint32_t i = 0; i < combine.operand_count; ++i) {
    const Progress operand = progress(plan_.operands[combine.first_operand + i].after);
    ready = std::min(ready, operand.bytes);
    all &= operand.done;
  }
  ready -= ready % element_bytes();
  if (!all && ready - done.bytes < kCombineBytes) return false;
  const std::size_t block = kBlockElements * element_bytes();
  while (done.bytes < ready) {
    const std::size_t bytes = std::min(block, ready - done.bytes);
    combine_block(combine, done.bytes, bytes);
    done.bytes += bytes;
  }
  return done.done = all;
}

// f16 and bf16 are widened, reduced over all ranks, divided in f32 and rounded once.
void Collective::combine_block(const Combine& combine, std::size_t offset, std::size_t bytes) {
  const simd::Kernels& kernels = *group_.options().kernels;
  const std::size_t count = bytes / element_bytes();
  alignas(64) std::array<std::byte, kBlockElements * 8> sum;
  const bool widen = is_half(call_.dtype) && (call_.op == ReduceOp::sum || call_.op == ReduceOp::prod);
  const auto operand = [&](std::uint32_t i) { return readable(plan_.operands[combine.first_operand + i].from) + offset; };
  std::byte* into = writable(combine.into) + offset;
  if (!widen) {
    reduce_(sum.data(), operand(0), operand(1), count);
    for (std::uint32_t i = 2; i < combine.operand_count; ++i) reduce_(sum.data(), sum.data(), operand(i), count);
    std::memcpy(into, sum.data(), bytes);
    finish_piece(into, count);
    return;
  }
  alignas(64) std::array<std::byte, kBlockElements * 4> wide;
  const auto widen_to_f32 = kernels.cast(call_.dtype, DType::f32);
  const auto reduce_f32 = kernels.reduce(DType::f32, call_.op);
  widen_to_f32(sum.data(), operand(0), count);
  for (std::uint32_t i = 1; i < combine.operand_count; ++i) {
    widen_to_f32(wide.data(), operand(i), count);
    reduce_f32(sum.data(), sum.data(), wide.data(), count);
  }
  if (divide_ != nullptr) kernels.divide(DType::f32)(sum.data(), count, call_.divisor);
  kernels.cast(DType::f32, call_.dtype)(into, sum.data(), count);
  canonical_nan_(into, count);
}

void Collective::finish_piece(std::byte* data, std::size_t count) const {
  if (divide_ != nullptr) divide_(data, count, call_.divisor);
  // NaN payloads differ between CPUs; the result may not.
  if (canonical_nan_ != nullptr) canonical_nan_(data, count);
}

// --- Lane ---

void Collective::Lane::start(const PeerSteps& steps, std::size_t call_offset, std::size_t call_bytes) {
  steps_ = steps;
  call_offset_ = call_offset;
  call_bytes_ = call_bytes;
  sequence_ = collective_.sequence_;
  session_ = &collective_.group_.session(steps.peer);
  window_ = &collective_.windows_[static_cast<std::size_t>(steps.peer)];
  called_ = call_given_ = absolved_ = false;
  eager_taken_ = 0;
  next_send_ = frames_out_ = next_receive_ = 0;
  send_offset_ = receive_offset_ = 0;
  session_->mark_ready(*this);
}

void Collective::Lane::withdraw() {
  if (session_ != nullptr) session_->withdraw(*this);
}

void Collective::Lane::on_call() {
  called_ = true;
  if (eager_taken_ > 0) window_->give_back(std::exchange(eager_taken_, 0));
  session_->mark_ready(*this);
}

bool Collective::Lane::absolve() {
  const bool only_call_out = steps_.send_count == 0 || data_left();
  if (!receives_done() || !only_call_out) return false;
  absolved_ = true;
  frames_out_ = 0;
  return true;
}

void Collective::Lane::leave_window() {
  if (eager_taken_ > 0) window_->leave_behind(sequence_, std::exchange(eager_taken_, 0));
}

void Collective::Lane::wake_if_sendable() {
  if (absolved_) return;
  if (!call_given_ || sendable()) session_->mark_ready(*this);
}

std::optional<std::size_t> Collective::Lane::sendable() const {
  if (next_send_ == steps_.send_count) return std::nullopt;
  const Send& send = collective_.plan_.sends[steps_.first_send + next_send_];
  const Progress source = collective_.progress(send.after);
  if (send.from.bytes == 0) return source.done ? std::optional<std::size_t>(0) : std::nullopt;
  const std::size_t segment = collective_.group_.options().segment_bytes;
  const std::size_t ready = (source.done ? send.from.bytes : std::min(source.bytes, send.from.bytes)) - send_offset_;
  const std::size_t left = send.from.bytes - send_offset_;
  if (ready < left && ready < segment) return std::nullopt;
  std::size_t bytes = std::min(ready, segment);
  if (!called_) {
    const std::size_t used = eager_taken_ - call_cost();
    const std::size_t allowance = collective_.group_.options().eager_bytes;
    bytes = std::min({bytes, allowance - std::min(allowance, used), window_->room()});
    bytes -= bytes % collective_.element_bytes();
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

std::optional<OutgoingFrame> Collective::Lane::next_frame() {
  FrameHeader header;
  header.group = collective_.group_.members().group_id(steps_.peer);
  header.stream = collective_.stream_;
  header.sequence = collective_.sequence_;
  if (!call_given_) {
    if (steps_.call_with_first_send && !collective_.progress(collective_.plan_.sends[steps_.first_send].after).done) return std::nullopt;
    if (!called_) {
      if (window_->room() < call_cost()) return std::nullopt;
      window_->take(call_cost());
      eager_taken_ = call_cost();
    }
    call_given_ = true;
    ++frames_out_;
    header.kind = FrameKind::call;
    header.payload_bytes = static_cast<std::uint32_t>(call_bytes_);
    return OutgoingFrame{header, ConstBytes(collective_.records_).subspan(call_offset_, call_bytes_)};
  }
  const auto bytes = sendable();
  if (!bytes) return std::nullopt;
  const Send& send = collective_.plan_.sends[steps_.first_send + next_send_];
  if (!called_) {
    window_->take(*bytes);
    eager_taken_ += *bytes;
  }
  header.kind = FrameKind::data;
  header.payload_bytes = static_cast<std::uint32_t>(*bytes);
  header.transfer = next_send_;
  header.offset = send_offset_;
  const OutgoingFrame frame{header, {collective_.readable(send.from) + send_offset_, *bytes}};
  ++frames_out_;
  send_offset_ += *bytes;
  if (send_offset_ == send.from.bytes) {
    ++next_send_;
    send_offset_ = 0;
  }
  return frame;
}

void Collective::Lane::frame_sent(const FrameHeader&) {
  --frames_out_;
  if (sends_left()) collective_.advance();
}

Status Collective::Lane::begin_frame(const FrameHeader& header) {
  const auto refuse = [&](const std::string& why) {
    return Status{Errc::protocol_error, "data of " + describe(collective_.call_) + " that does not fit: " + why};
  };
  if (!called_) return refuse("its call has not come");
  if (receives_done()) return refuse("all of it has already come");
  const Receive& receive = current_receive();
  if (header.transfer != next_receive_)
    return refuse("transfer " + std::to_string(header.transfer) + " instead of " + std::to_string(next_receive_));
  if (header.offset != receive_offset_)
    return refuse("offset " + std::to_string(header.offset) + " instead of " + std::to_string(receive_offset_));
  const std::size_t left = receive.into.bytes - receive_offset_;
  if (header.payload_bytes > left)
    return refuse(std::to_string(header.payload_bytes) + " bytes where " + std::to_string(left) + " are due");
  if (header.payload_bytes == 0 && left > 0) return refuse("an empty frame");
  if (header.payload_bytes % collective_.element_bytes() != 0) return refuse("half an element");
  return {};
}

const Receive& Collective::Lane::current_receive() const { return collective_.plan_.receives[steps_.first_receive + next_receive_]; }

Bytes Collective::Lane::direct() {
  const Receive& receive = current_receive();
  if (receive.verb != Verb::copy) return {};
  return {collective_.writable(receive.into) + receive_offset_, receive.into.bytes - receive_offset_};
}

void Collective::Lane::received_direct(std::size_t count) { received_piece(count); }

std::size_t Collective::Lane::consume(ConstBytes bytes) {
  const Receive& receive = current_receive();
  std::byte* into = collective_.writable(receive.into) + receive_offset_;
  if (receive.verb == Verb::copy) {
    std::memcpy(into, bytes.data(), bytes.size());
    received_piece(bytes.size());
    return bytes.size();
  }
  const std::size_t count = bytes.size() / collective_.element_bytes();
  if (count == 0) return 0;
  collective_.reduce_(into, bytes.data(), collective_.readable(receive.operand) + receive_offset_, count);
  if (receive.finish) collective_.finish_piece(into, count);
  received_piece(count * collective_.element_bytes());
  return count * collective_.element_bytes();
}

void Collective::Lane::received_piece(std::size_t bytes) {
  receive_offset_ += bytes;
  collective_.progress_[steps_.first_receive + next_receive_].bytes = receive_offset_;
  if (receive_offset_ < current_receive().into.bytes) collective_.advance();
}

void Collective::Lane::frame_ended() {
  if (receive_offset_ == current_receive().into.bytes) {
    collective_.progress_[steps_.first_receive + next_receive_].done = true;
    ++next_receive_;
    receive_offset_ = 0;
  }
  collective_.advance();
}

std::size_t Collective::Lane::received_bytes() const {
  std::size_t bytes = receive_offset_;
  for (std::uint32_t i = 0; i < next_receive_; ++i) bytes += collective_.plan_.receives[steps_.first_receive + i].into.bytes;
  return bytes;
}

std::size_t Collective::Lane::sent_bytes() const {
  std::size_t bytes = send_offset_;
  for (std::uint32_t i = 0; i < next_send_; ++i) bytes += collective_.plan_.sends[steps_.first_send + i].from.bytes;
  return bytes;
}

std::size_t Collective::Lane::bytes_to_send() const {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < steps_.send_count; ++i) bytes += collective_.plan_.sends[steps_.first_send + i].from.bytes;
  return bytes;
}

std::size_t Collective::Lane::expected_bytes() const {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < steps_.receive_count; ++i) bytes += collective_.plan_.receives[steps_.first_receive + i].into.bytes;
  return bytes;
}

}  // namespace ringlet
