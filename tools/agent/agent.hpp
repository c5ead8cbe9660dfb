#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/rendezvous/incoming_links.hpp"
#include "tools/agent/allow_list.hpp"
#include "tools/agent/surveyor.hpp"
#include "tools/job/machine_session.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::agent {

struct AgentOptions {
  std::string name, group, version;
  std::string token;
  std::optional<Address> listen;  // nothing: all interfaces, any port that is free
  AllowList allowed{{}, ""};
  int max_ranks = 1;
  std::string helper_path;               // the `ringlet` binary
  Surveyor::FindMachine find_machine{};  // finds the machines to which it measures its ways
};

/// An event at an agent, for people.
struct AgentEvent {
  enum class Kind : std::uint8_t { job_started, job_ended, refused };
  Kind kind = Kind::job_started;
  job::JobView job;
  std::string text;  // refused: the sentence; job_ended: why early
};

/// Starts programs that this machine's owner has allowed, for those who know the group's token. Belongs to the loop's thread; destroying it
/// kills all ranks that run.
class Agent final : private job::SessionHost {
 public:
  using OnEvent = std::function<void(const AgentEvent&)>;

  /// `loop` outlives it.
  Agent(UvLoop& loop, AgentOptions options, OnEvent on_event);
  ~Agent() override;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Begins to listen; `invalid_argument` with the address and the reason.
  Status open();
  /// Where it listens, once open.
  std::uint16_t port() const { return listeners_.empty() ? std::uint16_t{0} : listeners_.front()->address().port; }
  /// Takes no more connections and ends the jobs, within their grace.
  void close();
  /// Whether nothing runs.
  bool idle() const;

 private:
  void take(std::unique_ptr<Link> link);
  job::Offer offer(const job::Hail& hail) override;
  std::optional<job::Failed> admit(job::StartRanks& start) override;
  std::unique_ptr<job::RankCrew> make_crew(job::CrewEvents events) override;
  void measure(const job::PathSurvey& survey, std::function<void(const job::SurveyedPaths&)> on_done) override;
  int free_ranks() const;

  UvLoop& loop_;
  const AgentOptions options_;
  OnEvent on_event_;
  UvNetwork network_;
  TokenAuthenticator authenticator_;
  Surveyor surveyor_;
  std::unique_ptr<IncomingLinks> incoming_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::list<std::unique_ptr<job::MachineSession>> sessions_;
  bool closing_ = false;
};

}  // namespace ringlet::agent
