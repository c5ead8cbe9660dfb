#include "tools/agent/agent.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <ringlet/error.hpp>
#include <span>
#include <utility>

#include "core/rendezvous/listeners.hpp"
#include "tools/job/message_link.hpp"
#include "tools/launch/local_crew.hpp"
#include "tools/launch/local_machine.hpp"
#include "tools/launch/uv_handles.hpp"

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
      identity_(*options_.key, options_.name, options_.version),
      surveyor_(loop, network_, authenticator_, {&identity_, options_.group}, options_.find_machine) {
  // Processes that a job has left behind may end long after it.
  child_signals_ = std::make_unique<launch::UvSignal>(loop_.uv(), SIGCHLD, [](int) { launch::reap_adopted(); });
  incoming_ = std::make_unique<IncomingLinks>(loop_, authenticator_);
  incoming_->set_expected(LinkRequest::Kind::agent);
  incoming_->set_on_link([this](std::unique_ptr<Link> link) { take(std::move(link)); });
}

Agent::~Agent() = default;

/// Another `ringlet up` of this machine may have the agents' usual port, and others all of the ranks'.
Result<std::unique_ptr<Listener>> Agent::listen() {
  if (options_.listen) return network_.listen(*options_.listen, incoming_->acceptor());
  if (auto usual = network_.listen({"0.0.0.0", kAgentPort}, incoming_->acceptor()); usual.ok()) return usual;
  // The ranks begin at the other end.
  const PortRange& ports = options_.ports;
  if (auto one = listen_at_one_of(network_, "0.0.0.0", ports, ports.count() - 1, incoming_->acceptor()); one.ok()) return one;
  return network_.listen({"0.0.0.0", 0}, incoming_->acceptor());
}

void Agent::open_rank_listener() {
  if (options_.ports.any()) return;
  auto listener = listen_at_one_of(network_, "0.0.0.0", options_.ports, 0, [](const std::unique_ptr<Link>&) {});
  if (listener.ok()) rank_listener_ = std::move(listener).value();
}

Status Agent::open() {
  auto listener = listen();
  if (!listener.ok()) return listener.status();
  listeners_.push_back(std::move(listener).value());
  open_rank_listener();
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
  rank_listener_.reset();
  for (const auto& session : sessions_) session->end("its owner ended `ringlet up`");
}

bool Agent::idle() const { return sessions_.empty(); }

int Agent::free_ranks() const {
  int taken = 0;
  for (const auto& session : sessions_)
    if (session) taken += session->ranks();
  return std::max(options_.max_ranks - taken, 0);
}

std::string Agent::find_distrust(const std::string& name, const machines::PublicKey& key) {
  try {
    machines::Acquaintance met = options_.machines->meet_asking(name, key);
    if (met.first) {
      job::JobView asking;
      asking.from = met.name;
      on_event_({AgentEvent::Kind::first_contact, asking, machines::fingerprint(key)});
    }
    return std::move(met.refusal);
  } catch (const Error& error) {
    return std::string("it cannot tell whom it trusts: ") + error.what();
  }
}

std::string Agent::find_refusal(const job::Hail& hail, const LinkBinding& binding) {
  if (hail.protocol != job::kProtocol)
    return fmt::format("Ringlet {} and Ringlet {} of {} cannot work together", options_.version, hail.version, hail.from);
  if (hail.group != options_.group) return fmt::format("it is up in group {}, not in {}", options_.group, hail.group);
  const auto key = sender_of(hail, options_.group, binding);
  if (!key) return fmt::format("{} did not prove its key on this link; somebody may stand between the two machines", hail.from);
  if (std::string distrust = find_distrust(hail.from, *key); !distrust.empty()) return distrust;
  if (hail.program.empty()) return {};
  if (!refusal_.empty()) return refusal_;
  if (!hail.directory.empty() && !launch::is_directory(hail.directory)) return "there is no directory " + hail.directory;
  return options_.allowed.ask(hail.program).refusal;
}

job::Offer Agent::offer(const job::Hail& hail, const LinkBinding& binding) {
  job::Offer offer{job::kProtocol, options_.version, options_.name, static_cast<std::uint32_t>(free_ranks()), find_refusal(hail, binding)};
  identity_.sign(offer, options_.group, binding);
  if (!offer.refusal.empty()) {
    offer.refusal_code = kRefused;
    tell_refusal(hail, offer.refusal);
  }
  return offer;
}

void Agent::tell_refusal(const job::Hail& hail, const std::string& why) {
  job::JobView job;
  job.program = hail.program;
  job.from = hail.from;
  on_event_({AgentEvent::Kind::refused, job, why});
}

std::optional<job::Failed> Agent::admit(job::StartRanks& start, const job::Hail& hail) {
  auto refusal = find_failure(start, hail);
  if (refusal) tell_refusal(hail, refusal->text);
  return refusal;
}

std::optional<job::Failed> Agent::find_withdrawal(const job::StartRanks& start, const job::Hail& hail) {
  job::StartRanks again = start;
  auto refusal = find_forbidden(again, hail);
  if (refusal) tell_refusal(hail, refusal->text);
  return refusal;
}

std::optional<job::Failed> Agent::find_failure(job::StartRanks& start, const job::Hail& hail) {
  // Its program may have been offered before.
  if (!refusal_.empty()) return job::Failed{kRefused, refusal_};
  if (start.ranks > static_cast<std::uint32_t>(free_ranks()))
    return job::Failed{
        1, fmt::format("{} ranks were asked for, and {} are free now; another job may have come between", start.ranks, free_ranks())};
  return find_forbidden(start, hail);
}

std::optional<job::Failed> Agent::find_forbidden(job::StartRanks& start, const job::Hail& hail) {
  using job::Failed;
  // The link has proved the key, but the owner may have removed the machine since.
  machines::PublicKey key{};
  if (hail.public_key.size() != key.size()) return Failed{kRefused, "it did not say who it is"};
  std::copy_n(std::as_bytes(std::span(hail.public_key)).begin(), key.size(), key.begin());
  if (std::string distrust = find_distrust(hail.from, key); !distrust.empty()) return Failed{kRefused, std::move(distrust)};
  if (auto mistake = find_mistake(start)) return Failed{2, std::move(*mistake)};
  if (auto refused = options_.variables.find_refused(start.environment)) return Failed{kRefused, std::move(*refused)};
  AllowList::Answer answer = options_.allowed.ask(start.program, &start.arguments);
  if (!answer.refusal.empty()) return Failed{kRefused, answer.refusal};
  start.program = std::move(answer.program);
  start.grace_ms = std::min(start.grace_ms, kMaxGraceMs);
  return std::nullopt;
}

std::unique_ptr<job::RankCrew> Agent::make_crew(job::CrewEvents events) {
  launch::CrewSettings settings{options_.helper_path};
  settings.ports = options_.ports;
  return std::make_unique<launch::LocalCrew>(loop_, std::move(settings), std::move(events));
}

void Agent::measure(const job::PathSurvey& survey, std::function<void(const job::SurveyedPaths&)> on_done) {
  surveyor_.measure(survey, std::move(on_done));
}

}  // namespace ringlet::agent
