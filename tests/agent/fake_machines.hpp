#pragma once

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/rendezvous/dialler.hpp"
#include "sim/sim_network.hpp"
#include "tools/job/job.hpp"
#include "tools/job/machine_session.hpp"
#include "tools/job/message_link.hpp"

namespace ringlet::test {

/// A crew whose ranks run in virtual time until they are told to end.
class FakeCrew final : public job::RankCrew {
 public:
  FakeCrew(EventLoop& loop, job::CrewEvents events) : loop_(loop), events_(std::move(events)), alive_(std::make_shared<bool>(true)) {}
  ~FakeCrew() override {
    *alive_ = false;
    if (on_gone) on_gone();
  }

  Result<std::uint16_t> open_coordinator(const job::BindPort& where) override {
    meeting_host = where.host;
    return std::uint16_t{4711};
  }
  Result<std::vector<std::uint32_t>> start(const job::StartRanks& start) override {
    started = start;
    std::vector<std::uint32_t> pids;
    for (std::uint32_t i = 0; i < start.ranks && !start.waits; ++i) {
      running.insert(start.first_rank + i);
      pids.push_back(1000 + start.first_rank + i);
    }
    if (on_started && !start.waits) later([this] { on_started(); });
    return pids;
  }
  Result<std::vector<std::uint32_t>> restart(const job::RestartRanks& order) override {
    restarted.push_back(order);
    std::vector<std::uint32_t> pids;
    for (const std::uint32_t rank : order.ranks) {
      running.insert(rank);
      pids.push_back(static_cast<std::uint32_t>(1000 * (restarted.size() + 1)) + rank);
    }
    if (on_restarted) later([this, order] { on_restarted(order); });
    return pids;
  }
  void send(int signal_number) override { signals.push_back(signal_number); }
  void stop(int signal_number, Duration grace) override {
    signals.push_back(signal_number);
    graces.push_back(grace);
    stopping_ = true;
    for (const std::uint32_t rank : running)
      later([this, rank, signal_number] { end(rank, 0, static_cast<std::uint32_t>(signal_number), true); });
    if (running.empty() && !has_traces_) later([this] { tell_over(); });
  }
  void stop_ranks(const std::vector<std::uint32_t>& ranks, int signal_number, Duration) override {
    for (const std::uint32_t rank : ranks)
      later([this, rank, signal_number] { end(rank, 0, static_cast<std::uint32_t>(signal_number), true); });
  }
  void hold_output(bool error, bool is_held) override {
    if (!error) held = is_held;
  }
  void write_input(std::string_view bytes) override {
    input += bytes;
    later(events_.on_input_taken);
  }
  void take_trace() override { ++traces_taken; }
  void drop_traces() override {
    traces_dropped = true;
    if (on_traces_dropped) on_traces_dropped();
  }

  void trace(job::TracePiece piece) { events_.on_trace(std::move(piece)); }
  void print(std::uint32_t rank, std::string text) { events_.on_output({rank, false, std::move(text)}); }
  void end(std::uint32_t rank, std::uint32_t code, std::uint32_t signal = 0, bool stopped = false) { end({rank, code, signal, stopped}); }
  void end(const job::Exit& exit) {
    if (running.erase(exit.rank) == 0) return;
    events_.on_exit(exit);
    if (running.empty() && (!started->elastic || stopping_)) later([this] { tell_over(); });
  }
  /// The rank ends, and its trace has yet to be sent.
  void end_before_traces(std::uint32_t rank) {
    has_traces_ = true;
    if (running.erase(rank) != 0) events_.on_exit({rank, 0, 0, false});
  }
  /// All traces have been sent, or dropped.
  void end_traces() {
    if (std::exchange(has_traces_, false) && running.empty()) later([this] { tell_over(); });
  }
  /// The rank says that it is in a group.
  void enter(std::uint32_t rank, std::uint32_t epoch, std::uint32_t size) {
    job::Membership membership{rank, epoch, 0, size};
    membership.door = "door:1";
    events_.on_membership(membership);
  }
  void enter(const job::Membership& membership) { events_.on_membership(membership); }
  void later(std::function<void()> task) {
    loop_.after(Duration::milliseconds(1), [alive = alive_, task = std::move(task)] {
      if (*alive) task();
    });
  }

  std::function<void()> on_started, on_gone, on_traces_dropped;
  std::function<void(const job::RestartRanks&)> on_restarted;
  std::vector<job::RestartRanks> restarted;
  std::string meeting_host, input;
  std::optional<job::StartRanks> started;
  std::set<std::uint32_t> running;
  std::vector<int> signals;
  std::vector<Duration> graces;
  int traces_taken = 0;
  bool held = false, traces_dropped = false;

 private:
  void tell_over() {
    if (!std::exchange(over_, true)) events_.on_over();
  }

  EventLoop& loop_;
  job::CrewEvents events_;
  bool over_ = false, stopping_ = false, has_traces_ = false;
  std::shared_ptr<bool> alive_;
};

/// An agent that starts no processes, on a simulated node of its own.
class FakeMachine final : public job::SessionHost {
 public:
  FakeMachine(SimWorld& world, std::string name) : node(world.add_node()), name_(std::move(name)) {
    listener_ = std::move(node.network().listen({node.host(), 5000}, [this](std::unique_ptr<Link> link) {
                  if (silent) return unheard.push_back(std::move(link));
                  if (!authenticator) return open_session(std::move(link));
                  handshake_ = std::make_unique<AcceptHandshake>(
                      node.loop(), std::move(link), ConstBytes{}, *authenticator, [this](const LinkRequest&) { handshake_->accept(); },
                      [this](Result<std::unique_ptr<Link>> authenticated) {
                        if (authenticated.ok()) open_session(std::move(authenticated).value());
                      });
                })).value();
  }
  ~FakeMachine() override { session.reset(); }

  job::Offer offer(const job::Hail& hail, const LinkBinding& binding) override {
    hailed = hail;
    if (on_hail) return on_hail(hail, binding);
    return {protocol, "9.9.9", name_, free_ranks, refusal, 126};
  }
  std::optional<job::Failed> admit(job::StartRanks&, const job::Hail&) override { return failure; }
  std::optional<job::Failed> find_withdrawal(const job::StartRanks&, const job::Hail&) override { return withdrawal; }
  std::unique_ptr<job::RankCrew> make_crew(job::CrewEvents events) override {
    auto made = std::make_unique<FakeCrew>(node.loop(), std::move(events));
    crew = made.get();
    crew->on_gone = [this] { crew = nullptr; };
    crew->on_started = [this] {
      if (on_started) on_started(*crew);
    };
    crew->on_restarted = [this](const job::RestartRanks& order) {
      if (on_restarted) on_restarted(*crew, order);
    };
    return made;
  }
  void measure(const job::PathSurvey&, std::function<void(const job::SurveyedPaths&)> on_done) override { on_done({}); }
  const std::string& name() const { return name_; }

  SimNode& node;
  std::unique_ptr<job::MachineSession> session;
  FakeCrew* crew = nullptr;
  std::function<void(FakeCrew&)> on_started;
  std::function<void(FakeCrew&, const job::RestartRanks&)> on_restarted;
  std::function<job::Offer(const job::Hail&, const LinkBinding&)> on_hail;  // unset: it makes an offer to all
  job::Hail hailed;
  std::uint32_t protocol = job::kProtocol, free_ranks = 4;
  std::string refusal, ended_how;
  std::optional<job::Failed> failure, withdrawal;
  int jobs_started = 0, jobs_ended = 0;
  bool silent = false;  // takes connections, and says nothing
  std::vector<std::unique_ptr<Link>> unheard;
  std::unique_ptr<Authenticator> authenticator;  // unset: links come without a handshake

 private:
  void open_session(std::unique_ptr<Link> link) {
    job::MachineSession::Events events;
    events.on_started = [this](const job::JobView&) { ++jobs_started; };
    events.on_ended = [this](const job::JobView&, const std::string& how) {
      ++jobs_ended;
      ended_how = how;
    };
    events.on_over = [this] { session.reset(); };
    auto channel = std::make_unique<job::MessageLink>(node.loop(), std::move(link), job::kAgentLimits);
    session = std::make_unique<job::MachineSession>(node.loop(), std::move(channel), *this, std::move(events));
  }

  std::string name_;
  std::unique_ptr<AcceptHandshake> handshake_;
  std::unique_ptr<Listener> listener_;
};

/// Several machines, and a node that runs a job on them.
struct FakeRun {
  SimWorld world;
  SimNode& here = world.add_node();
  std::deque<FakeMachine> machines;
  std::unique_ptr<job::Job> job;
  job::JobOptions options;
  std::map<std::size_t, std::string> output;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> traces;  // by rank and restarts
  std::vector<std::string> notices;
  std::optional<job::JobResult> result;
  bool all_started = false, takes_output = true;
  int inputs_taken = 0, added = 0;
  std::set<std::size_t> skipped;                     // machines that are not there at first; the last ones
  std::unique_ptr<Authenticator> authenticator;      // unset: links are dialled without a handshake
  std::map<std::size_t, std::string> dialled_hosts;  // where it is not the machine's own
  std::unique_ptr<Dialler> dialler;

  explicit FakeRun(int count, std::uint64_t seed = 1) : world(seed) {
    for (int i = 0; i < count; ++i) machines.emplace_back(world, "m" + std::to_string(i));
    options.version = "1.2.3";
    options.group = "home";
    options.from = "desk";
    options.start.token = "token-of-the-job";
    options.start.job = 42;
  }
  ~FakeRun() {
    job.reset();
    dialler.reset();
  }

  void start() {
    job::Job::Events events;
    events.on_notice = [this](const std::string& text) { notices.push_back(text); };
    events.on_chosen = [](const std::vector<job::RankExit>&) {};
    events.on_started = [this] { all_started = true; };
    events.on_added = [this](const std::vector<job::RankExit>&) { ++added; };
    events.on_input_taken = [this] { ++inputs_taken; };
    events.on_trace = [this](const job::TracePiece& piece) { traces[{piece.rank, piece.restarts}] += piece.data; };
    events.on_output = [this](std::size_t machine, const job::Output& part) {
      output[machine] += part.data;
      if (takes_output) job->take_output(machine, part.error, part.data.size());
    };
    events.on_end = [this](const job::JobResult& end) { result = end; };
    std::vector<job::Candidate> candidates;
    for (std::size_t i = 0; i < machines.size(); ++i)
      if (!skipped.contains(i)) candidates.push_back(candidate(i));
    job = std::make_unique<job::Job>(here.loop(), options, candidates, std::move(events));
    if (authenticator) dialler = std::make_unique<Dialler>(here.loop(), here.network(), *authenticator);
    for (std::size_t i = 0; i < machines.size(); ++i)
      if (!skipped.contains(i)) dial(i, i);
  }
  job::Candidate candidate(std::size_t i) const { return {machines[i].name(), "/opt/" + machines[i].name(), machines[i].node.host()}; }
  /// Brings a machine that was left out into the running job; those before it are in it.
  void add(std::size_t i) { dial(i, job->add_machine(candidate(i))); }
  void dial(std::size_t i, std::size_t index) {
    const Dialled on_dialled = [this, index](Result<std::unique_ptr<Link>> link) {
      if (link.ok())
        job->reach(index, std::make_unique<job::MessageLink>(here.loop(), std::move(link).value(), job::kAgentLimits));
      else
        job->miss(index, link.status().text());
    };
    const Address address{dialled_hosts.count(i) != 0 ? dialled_hosts.at(i) : machines[i].node.host(), 5000};
    if (dialler)
      dialler->dial(address, {}, {.kind = LinkRequest::Kind::agent}, on_dialled);
    else
      here.network().dial(address, Duration::seconds(3), on_dialled);
  }
  RunEnd run_until(const std::function<bool()>& condition) {
    return world.run_until(condition, {.events = 5'000'000, .time = Duration::seconds(300)});
  }
  void run_to_end() {
    REQUIRE(run_until([this] { return result.has_value(); }) == RunEnd::done);
  }
};

}  // namespace ringlet::test
