#include "tools/agent/agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/job/message_link.hpp"
#include "tools/launch/local_crew.hpp"
#include "tools/launch/local_machine.hpp"

namespace ringlet::agent {

namespace {

// More sessions at once than these, each of a holder of the token, are a mistake.
constexpr std::size_t kMaxSessions = 64;
constexpr std::uint32_t kRefused = 126;
constexpr std::uint32_t kMaxGraceMs = 3'600'000;

}  // namespace

Agent::Agent(UvLoop& loop, AgentOptions options, OnEvent on_event)
    : loop_(loop),
      options_(std::move(options)),
      on_event_(std::move(on_event)),
      network_(loop),
      authenticator_(options_.token),
      surveyor_(loop, network_, authenticator_, options_.find_machine) {
  incoming_ = std::make_unique<IncomingLinks>(loop_, authenticator_);
  incoming_->set_expected(LinkRequest::Kind::agent);
  incoming_->set_on_link([this](std::unique_ptr<Link> link) { take(std::move(link)); });
}

Agent::~Agent() = default;

Status Agent::open() {
  const Address first = options_.listen.value_or(Address{"0.0.0.0", 0});
  auto listener = network_.listen(first, incoming_->acceptor());
  if (!listener.ok()) return listener.status();
  listeners_.push_back(std::move(listener).value());
  if (options_.listen) return {};
  // The beacon has room for one port. Where IPv6 is missing, or has the port taken, IPv4 serves.
  auto v6 = network_.listen({"::", port()}, incoming_->acceptor());
  if (v6.ok()) listeners_.push_back(std::move(v6).value());
  return {};
}

void Agent::take(std::unique_ptr<Link> link) {
  if (closing_ || sessions_.size() >= kMaxSessions) return;
  const auto place = sessions_.emplace(sessions_.end());
  job::MachineSession::Events events;
  events.on_started = [this](const job::JobView& job) { on_event_({AgentEvent::Kind::job_started, job, ""}); };
  events.on_ended = [this](const job::JobView& job, const std::string& how) { on_event_({AgentEvent::Kind::job_ended, job, how}); };
  events.on_over = [this, place] { sessions_.erase(place); };
  auto channel = std::make_unique<job::MessageLink>(loop_, std::move(link), job::kAgentLimits);
  job::SessionHost& host = *this;
  *place = std::make_unique<job::MachineSession>(loop_, std::move(channel), host, std::move(events));
}

void Agent::close() {
  closing_ = true;
  listeners_.clear();
  for (const auto& session : sessions_) session->end("its owner ended `ringlet up`");
}

bool Agent::idle() const { return sessions_.empty(); }

int Agent::free_ranks() const {
  int taken = 0;
  for (const auto& session : sessions_)
    if (session) taken += session->ranks();
  return std::max(options_.max_ranks - taken, 0);
}

job::Offer Agent::offer(const job::Hail& hail) {
  job::Offer offer{job::kProtocol, options_.version, options_.name, static_cast<std::uint32_t>(free_ranks()), ""};
  if (hail.protocol != job::kProtocol)
    offer.refusal = fmt::format("Ringlet {} and Ringlet {} of {} cannot work together", options_.version, hail.version, hail.from);
  else if (hail.group != options_.group)
    offer.refusal = fmt::format("it is up in group {}, not in {}", options_.group, hail.group);
  else if (!hail.directory.empty() && !launch::is_directory(hail.directory))
    offer.refusal = "there is no directory " + hail.directory;
  else
    offer.refusal = options_.allowed.ask(hail.program).refusal;
  if (!offer.refusal.empty()) {
    offer.refusal_code = kRefused;
    job::JobView job;
    job.program = hail.program;
    job.from = hail.from;
    on_event_({AgentEvent::Kind::refused, job, offer.refusal});
  }
  return offer;
}

std::optional<job::Failed> Agent::admit(job::StartRanks& start) {
  using job::Failed;
  if (start.ranks > static_cast<std::uint32_t>(free_ranks()))
    return Failed{
        1, fmt::format("{} ranks were asked for, and {} are free now; another job may have come between", start.ranks, free_ranks())};
  if (auto mistake = find_mistake(start)) return Failed{2, std::move(*mistake)};
  AllowList::Answer answer = options_.allowed.ask(start.program);
  if (!answer.refusal.empty()) return Failed{kRefused, answer.refusal};
  start.program = std::move(answer.program);
  start.grace_ms = std::min(start.grace_ms, kMaxGraceMs);
  return std::nullopt;
}

std::unique_ptr<job::RankCrew> Agent::make_crew(job::CrewEvents events) {
  return std::make_unique<launch::LocalCrew>(loop_, launch::CrewSettings{options_.helper_path}, std::move(events));
}

void Agent::measure(const job::PathSurvey& survey, std::function<void(const job::SurveyedPaths&)> on_done) {
  surveyor_.measure(survey, std::move(on_done));
}

}  // namespace ringlet::agent
