#include "tools/agent/agent_session.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ringlet::agent {

namespace {

constexpr std::int64_t kMaxGraceMs = 3'600'000;
constexpr std::size_t kMaxShownBytes = 256;
constexpr int kMaxSignals = 64;

Duration grace_of(std::uint32_t milliseconds) { return Duration::milliseconds(std::min<std::int64_t>(milliseconds, kMaxGraceMs)); }

}  // namespace

AgentSession::AgentSession(EventLoop& loop, std::unique_ptr<Link> link, Host& host, Events events)
    : loop_(loop), host_(host), events_(std::move(events)), alive_(std::make_shared<bool>(true)) {
  job_.peer = link->peer_name();
  link_ = std::make_unique<MessageLink>(
      loop, std::move(link), [this](Message message) { on_message(std::move(message)); },
      [this](const Status& status) { close(status.text()); });
}

AgentSession::~AgentSession() { *alive_ = false; }

void AgentSession::on_message(Message message) {
  std::visit([this](auto&& value) { on(std::move(value)); }, std::move(message));
}

void AgentSession::on(const Hail& hail) {
  if (std::exchange(hailed_, true)) return close("it hailed twice");
  job_.from = hail.from.substr(0, kMaxShownBytes);
  link_->send(host_.offer(hail));
}

void AgentSession::on(const Open& open) {
  if (!hailed_ || crew_) return close("it asked out of turn for a place to meet");
  make_crew();
  const auto port = crew_->open_coordinator(open.host);
  opened_ = true;
  if (port.ok()) return link_->send(Opened{port.value()});
  link_->send(Failed{1, port.status().text()});
}

void AgentSession::on(Start start) {
  if (!hailed_ || running_ || (crew_ && !opened_)) return close("it asked out of turn to start ranks");
  job_.id = start.job;
  job_.program = start.program;
  job_.first_rank = static_cast<int>(start.first_rank);
  job_.ranks = static_cast<int>(start.ranks);
  job_.world_size = static_cast<int>(start.world_size);
  grace_ = grace_of(start.grace_ms);
  if (auto refused = host_.admit(start)) {
    link_->send(*refused);
    link_->send(Over{});
    crew_.reset();
    opened_ = false;
    return;
  }
  if (!crew_) make_crew();
  running_ = true;
  events_.on_started(job_);
  const auto pids = crew_->start(start);
  if (pids.ok())
    link_->send(Started{pids.value()});
  else
    link_->send(Failed{1, pids.status().text()});
}

void AgentSession::on(const Credit& credit) {
  if (!crew_ || credit.bytes > output_under_way_) return close("it took more output than there was");
  output_under_way_ -= credit.bytes;
  crew_->hold_output(output_under_way_ >= kOutputWindowBytes);
}

void AgentSession::on(const Order& order) {
  if (order.signal == 0 || order.signal > static_cast<std::uint32_t>(kMaxSignals)) return close("it sent a signal that there is not");
  // The last rank may have ended while the order was under way.
  if (!running_) return;
  const int number = static_cast<int>(order.signal);
  if (order.stop)
    crew_->stop(number, grace_of(order.grace_ms));
  else
    crew_->send(number);
}

void AgentSession::on(const Probe& probe) {
  if (probe.answer_bytes > kMaxEchoBytes || link_->unsent_bytes() > kMaxEchoBytes) return close("it asked for more echoes than it took");
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  link_->send(Echo{probe.number, static_cast<std::uint64_t>(now.count()), std::string(probe.answer_bytes, '\0')});
}

void AgentSession::on(const Survey& survey) {
  if (std::exchange(surveying_, true)) return close("it asked for a survey while one was made");
  host_.measure(survey, [this, alive = alive_](const Surveyed& surveyed) {
    if (!*alive) return;
    surveying_ = false;
    if (link_) link_->send(surveyed);
  });
}

void AgentSession::make_crew() {
  CrewEvents events;
  events.on_output = [this](Output output) { on_output(std::move(output)); };
  events.on_exit = [this](const Exit& exit) {
    if (link_) link_->send(exit);
  };
  events.on_failed = [this](const Failed& failed) {
    if (link_) link_->send(failed);
  };
  events.on_over = [this] { on_crew_over(); };
  crew_ = host_.make_crew(std::move(events));
}

void AgentSession::on_output(Output output) {
  // Nobody is left to show it to; the ranks must not wait for that.
  if (!link_) return;
  output_under_way_ += output.data.size();
  link_->send(output);
  if (output_under_way_ >= kOutputWindowBytes) crew_->hold_output(true);
}

void AgentSession::on_crew_over() {
  const bool ran = std::exchange(running_, false);
  if (ran) events_.on_ended(job_, end_reason_.value_or(""));
  if (link_)
    link_->send(Over{});
  else
    finish();
}

void AgentSession::close(const std::string& why) {
  if (end_reason_ || over_) return;
  end_reason_ = why;
  // It may be the caller.
  loop_.defer([link = std::shared_ptr<MessageLink>(std::move(link_))] {});
  if (!running_) return finish();
  crew_->hold_output(false);
  crew_->stop(SIGTERM, grace_);
}

void AgentSession::finish() {
  if (std::exchange(over_, true)) return;
  loop_.defer([this, alive = alive_] {
    if (*alive) events_.on_over();
  });
}

}  // namespace ringlet::agent
