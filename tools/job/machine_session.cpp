#include "tools/job/machine_session.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ringlet::job {

namespace {

constexpr std::size_t kMaxShownBytes = 256;
// What was sent last has arrived by then, unless the other end takes nothing.
constexpr Duration kFarewell = Duration::seconds(1);

}  // namespace

MachineSession::MachineSession(EventLoop& loop, std::unique_ptr<MessageChannel> channel, SessionHost& host, Events events)
    : loop_(loop), host_(host), events_(std::move(events)) {
  job_.peer = channel->peer_name();
  channel_ = std::move(channel);
  channel_->start([this](Message message) { on_message(std::move(message)); }, [this](const Status& status) { close(status.text()); });
}

MachineSession::~MachineSession() { loop_.cancel(farewell_timer_); }

void MachineSession::on_message(Message message) {
  // A closed channel may still hand on what it has received.
  if (!channel_) return;
  if (refused_) return close("it went on although it was refused");
  std::visit([this](auto&& value) { on(std::move(value)); }, std::move(message));
}

void MachineSession::send(const Message& message) {
  if (channel_) channel_->send(message);
}

void MachineSession::on(Hail hail) {
  if (hail_) return close("it hailed twice");
  hail_ = std::move(hail);
  job_.from = hail_->from.substr(0, kMaxShownBytes);
  const Offer offer = host_.offer(*hail_, channel_->binding());
  send(offer);
  refused_ = !offer.refusal.empty();
  if (refused_) close_after(kFarewell);
}

void MachineSession::on(const BindPort& open) {
  // The job may have ended here while the question was under way.
  if (elastic_ && (!running_ || end_reason_)) return;
  if (!hail_ || (crew_ && !elastic_)) return close("it asked out of turn for a place to meet");
  if (!crew_) make_crew();
  const auto port = crew_->open_coordinator(open);
  opened_ = true;
  if (port.ok()) return send(PortBound{port.value()});
  send(Failed{1, port.status().text()});
}

void MachineSession::on(StartRanks start) {
  if (!hail_ || running_ || end_reason_ || (crew_ && !opened_)) return close("it asked out of turn to start ranks");
  job_.id = start.job;
  job_.program = start.program;
  job_.first_rank = static_cast<int>(start.first_rank);
  job_.ranks = static_cast<int>(start.ranks);
  job_.world_size = static_cast<int>(start.world_size);
  if (start.elastic) asked_ = start;
  if (auto refused = host_.admit(start, *hail_)) {
    send(*refused);
    send(Over{});
    crew_.reset();
    opened_ = false;
    return;
  }
  grace_ = Duration::milliseconds(start.grace_ms);
  if (!crew_) make_crew();
  running_ = true;
  elastic_ = start.elastic;
  wants_input_ = start.has_input && start.input_rank >= start.first_rank && start.input_rank - start.first_rank < start.ranks;
  events_.on_started(job_);
  const auto pids = crew_->start(start);
  if (pids.ok())
    send(RanksStarted{pids.value()});
  else
    send(Failed{1, pids.status().text()});
}

void MachineSession::on(const RestartRanks& restart) {
  if (elastic_ && (!running_ || end_reason_)) return;
  const auto belongs = [&](std::uint32_t rank) {
    const auto first = static_cast<std::uint32_t>(job_.first_rank);
    return rank >= first && rank - first < static_cast<std::uint32_t>(job_.ranks);
  };
  if (!elastic_ || !std::all_of(restart.ranks.begin(), restart.ranks.end(), belongs))
    return close("it asked out of turn to start ranks again");
  if (const auto withdrawn = host_.find_withdrawal(asked_, *hail_)) return end(withdrawn->text);
  const auto pids = crew_->restart(restart);
  if (pids.ok()) return send(RanksStarted{pids.value()});
  send(Failed{1, pids.status().text()});
}

void MachineSession::on(const Credit& credit) {
  std::size_t& under_way = output_under_way_[credit.error ? 1 : 0];
  if (!crew_ || credit.bytes > under_way) return close("it took more output than there was");
  under_way -= credit.bytes;
  crew_->hold_output(credit.error, under_way >= kOutputWindowBytes);
}

void MachineSession::on(const Order& order) {
  // The last rank may have ended while the order was under way.
  if (!running_) return;
  // end() has stopped the ranks already; only an order to kill them at once adds to it.
  if (order.stop && end_reason_ && order.grace_ms > 0) return;
  const int number = static_cast<int>(order.signal);
  const Duration grace = std::min(Duration::milliseconds(order.grace_ms), grace_);
  if (order.stop && elastic_ && !order.ranks.empty())
    crew_->stop_ranks(order.ranks, number, grace);
  else if (order.stop)
    crew_->stop(number, grace);
  else
    crew_->send(number);
}

void MachineSession::on(const Input& input) {
  // The last rank may have ended while the input was under way.
  if (!running_) return;
  if (!std::exchange(wants_input_, false)) return close("it sent standard input that no rank waits for");
  crew_->write_input(input.data);
}

void MachineSession::on(const TraceTaken& taken) {
  if (taken.unwanted) {
    if (running_) crew_->drop_traces();
    return;
  }
  if (!std::exchange(trace_under_way_, false)) return close("it took a piece of a trace that it was not sent");
  crew_->take_trace();
}

void MachineSession::on(const EchoRequest& request) {
  if (!hail_) return close("it asked for an echo before it said who it is");
  if (request.answer_bytes > kMaxEchoBytes || channel_->unsent_bytes() > kMaxEchoBytes)
    return close("it asked for more echoes than it took");
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  send(Echo{request.number, static_cast<std::uint64_t>(now.count()), std::string(request.answer_bytes, '\0'), host_.rank_port()});
}

void MachineSession::on(const PathSurvey& survey) {
  if (!hail_) return close("it asked for a survey before it said who it is");
  if (std::exchange(surveying_, true)) return close("it asked for a survey while one was made");
  host_.measure(survey, alive_.wrap([this](const SurveyedPaths& surveyed) {
    surveying_ = false;
    send(surveyed);
  }));
}

void MachineSession::make_crew() {
  CrewEvents events;
  events.on_output = [this](Output output) { on_output(std::move(output)); };
  events.on_exit = [this](const Exit& exit) { send(exit); };
  events.on_membership = [this](const Membership& membership) { send(membership); };
  events.on_notice = [this](const std::string& text) { send(Notice{text}); };
  events.on_input_taken = [this] {
    wants_input_ = true;
    send(InputTaken{});
  };
  events.on_trace = [this](TracePiece piece) { on_trace(std::move(piece)); };
  events.on_over = [this] { on_crew_over(); };
  crew_ = host_.make_crew(std::move(events));
}

void MachineSession::on_output(Output output) {
  // The ranks must not wait for a reader that is gone.
  if (!channel_) return;
  std::size_t& under_way = output_under_way_[output.error ? 1 : 0];
  under_way += output.data.size();
  if (under_way >= kOutputWindowBytes) crew_->hold_output(output.error, true);
  channel_->send(output);
}

void MachineSession::on_trace(TracePiece piece) {
  if (!channel_) return crew_->drop_traces();
  trace_under_way_ = true;
  channel_->send(piece);
}

void MachineSession::on_crew_over() {
  const bool ran = std::exchange(running_, false);
  if (ran) events_.on_ended(job_, end_reason_.value_or(""));
  if (!channel_) return finish();
  send(Over{});
  if (end_reason_) close_after(kFarewell);
}

void MachineSession::end(const std::string& why) {
  if (!running_) return close(why);
  if (end_reason_) return;
  end_reason_ = why;
  send(Failed{1, why});
  crew_->stop(SIGTERM, grace_);
  close_after(grace_ + kFarewell);
}

void MachineSession::close_after(Duration time) {
  loop_.cancel(farewell_timer_);
  farewell_timer_ = loop_.after(time, [this] { close("the other end took too long"); });
}

void MachineSession::close(const std::string& why) {
  if (!channel_ || over_) return;
  const bool ending = end_reason_.has_value();
  if (!ending) end_reason_ = why;
  // The channel may be the caller.
  loop_.defer([channel = std::shared_ptr<MessageChannel>(std::move(channel_))] {});
  if (!running_) return finish();
  for (const bool error : {false, true}) crew_->hold_output(error, false);
  crew_->drop_traces();
  if (!ending) crew_->stop(SIGTERM, grace_);
}

void MachineSession::finish() {
  if (std::exchange(over_, true)) return;
  loop_.defer(alive_.wrap([this] { events_.on_over(); }));
}

}  // namespace ringlet::job
