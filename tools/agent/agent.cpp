#include "tools/agent/agent.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "tools/agent/local_crew.hpp"
#include "tools/launch/rank_environment.hpp"

namespace ringlet::agent {

namespace {

// Of those who know the token; more at once are a mistake.
constexpr std::size_t kMaxSessions = 64;
constexpr std::uint32_t kMaxWorldSize = 1'024;

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
  AgentSession::Events events;
  events.on_started = [this](const JobView& job) { on_event_({AgentEvent::Kind::job_started, job, ""}); };
  events.on_ended = [this](const JobView& job, const std::string& how) { on_event_({AgentEvent::Kind::job_ended, job, how}); };
  events.on_over = [this, place] { sessions_.erase(place); };
  Host& host = *this;
  place->session = std::make_unique<AgentSession>(loop_, std::move(link), host, std::move(events));
}

void Agent::close() {
  closing_ = true;
  listeners_.clear();
  for (const Entry& entry : sessions_) entry.session->close("the agent was ended");
}

bool Agent::idle() const { return sessions_.empty(); }

int Agent::free_ranks() const {
  int taken = 0;
  for (const Entry& entry : sessions_)
    if (entry.session) taken += entry.session->ranks();
  return std::max(options_.max_ranks - taken, 0);
}

Offer Agent::offer(const Hail& hail) {
  Offer offer{kProtocol, options_.version, options_.name, static_cast<std::uint32_t>(free_ranks()), ""};
  struct stat found{};
  if (hail.protocol != kProtocol)
    offer.refusal = fmt::format("{} has Ringlet {} and {} has {}, which cannot work together", options_.name, options_.version, hail.from,
                                hail.version);
  else if (hail.group != options_.group)
    offer.refusal = fmt::format("{} is up in group {}, not in {}", options_.name, options_.group, hail.group);
  else if (!hail.directory.empty() && (::stat(hail.directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)))
    offer.refusal = fmt::format("there is no directory {} on {}", hail.directory, options_.name);
  else
    offer.refusal = options_.allowed.ask(hail.program, options_.name).refusal;
  if (!offer.refusal.empty()) {
    JobView job;
    job.program = hail.program;
    job.from = hail.from;
    on_event_({AgentEvent::Kind::refused, job, offer.refusal});
  }
  return offer;
}

std::optional<Failed> Agent::admit(Start& start) {
  if (start.ranks == 0 || start.ranks > static_cast<std::uint32_t>(free_ranks()))
    return Failed{
        1, fmt::format("{} ranks were asked for, and {} are free now; another job may have come between", start.ranks, free_ranks())};
  if (start.world_size > kMaxWorldSize || start.ranks > start.world_size || start.first_rank > start.world_size - start.ranks)
    return Failed{2, fmt::format("ranks {} and {} more do not fit into a world of {}; at most {} ranks are possible", start.first_rank,
                                 start.ranks - 1, start.world_size, kMaxWorldSize)};
  for (const Variable& variable : start.environment) {
    if (const auto why = find_forbidden(variable.name)) return Failed{2, fmt::format("--env {}: it {}", variable.name, *why)};
    if (launch::is_reserved_variable(variable.name))
      return Failed{2, fmt::format("--env {}: the agent itself sets this variable for its ranks", variable.name)};
  }
  AllowList::Answer answer = options_.allowed.ask(start.program, options_.name);
  if (!answer.refusal.empty()) return Failed{126, answer.refusal};
  start.program = std::move(answer.program);
  return std::nullopt;
}

std::unique_ptr<RankCrew> Agent::make_crew(CrewEvents events) {
  return std::make_unique<LocalCrew>(loop_, loop_.uv(), options_.helper_path, std::move(events));
}

void Agent::measure(const Survey& survey, std::function<void(const Surveyed&)> on_done) { surveyor_.measure(survey, std::move(on_done)); }

}  // namespace ringlet::agent
