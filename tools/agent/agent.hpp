#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/port_range.hpp"
#include "core/rendezvous/incoming_links.hpp"
#include "tools/agent/allow_list.hpp"
#include "tools/agent/allowed_variables.hpp"
#include "tools/agent/surveyor.hpp"
#include "tools/job/machine_session.hpp"
#include "tools/machines/known_machines.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::launch {
class UvSignal;
}

namespace ringlet::agent {

/// Where an agent listens, unless it is told otherwise: the number is that of discovery's UDP port, so that a firewall needs one rule for
/// all.
inline constexpr std::uint16_t kAgentPort = 47'174;
/// Where the ranks listen that agents start.
inline constexpr PortRange kRankPorts{47'175, 47'238};

struct AgentOptions {
  std::string name, group, version;
  std::string token;
  std::optional<machines::MachineKey> key{};          // this machine's; has to be set
  std::optional<machines::KnownMachines> machines{};  // those of the group, which may ask; has to be set
  std::optional<Address> listen;                      // nothing: all interfaces, kAgentPort or else one of `ports`
  PortRange ports = kRankPorts;                       // where the ranks listen that it starts
  AllowList allowed{{}, ""};
  AllowedVariables variables{};
  int max_ranks = 1;
  std::string helper_path;               // the `ringlet` binary
  Surveyor::FindMachine find_machine{};  // finds the machines to which it measures its ways
};

/// An event at an agent, for people.
struct AgentEvent {
  enum class Kind : std::uint8_t { job_started, job_ended, refused, first_contact };
  Kind kind = Kind::job_started;
  job::JobView job;
  std::string text;  // refused: the sentence; job_ended: why early; first_contact: the fingerprint of the key of job.from
};

/// Starts programs that this machine's owner has allowed, for machines that know the group's token and prove their keys. Belongs to the
/// loop's thread; destroying it kills all ranks that run.
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
  /// Refuses jobs from now on, with this reason; those that run go on.
  void refuse_jobs(std::string reason) { refusal_ = std::move(reason); }
  /// Whether nothing runs.
  bool idle() const;

 private:
  Result<std::unique_ptr<Listener>> listen();
  void open_rank_listener();
  void take(std::unique_ptr<Link> link);
  job::Offer offer(const job::Hail& hail, const LinkBinding& binding) override;
  std::optional<job::Failed> admit(job::StartRanks& start, const job::Hail& hail) override;
  std::optional<job::Failed> find_withdrawal(const job::StartRanks& start, const job::Hail& hail) override;
  std::unique_ptr<job::RankCrew> make_crew(job::CrewEvents events) override;
  void measure(const job::PathSurvey& survey, std::function<void(const job::SurveyedPaths&)> on_done) override;
  std::uint16_t rank_port() const override { return rank_listener_ ? rank_listener_->address().port : std::uint16_t{0}; }
  std::string find_refusal(const job::Hail& hail, const LinkBinding& binding);
  /// Why the machine that has proved this key may ask for nothing; an empty text where it may.
  std::string find_distrust(const std::string& name, const machines::PublicKey& key);
  void tell_refusal(const job::Hail& hail, const std::string& why);
  /// Why the ranks are not started, or nothing; then `start` is as it is to be carried out.
  std::optional<job::Failed> find_failure(job::StartRanks& start, const job::Hail& hail);
  /// The same for what may change while ranks run: whom the owner trusts, and what is allowed.
  std::optional<job::Failed> find_forbidden(job::StartRanks& start, const job::Hail& hail);
  int free_ranks() const;

  UvLoop& loop_;
  const AgentOptions options_;
  OnEvent on_event_;
  UvNetwork network_;
  TokenAuthenticator authenticator_;
  const LinkIdentity identity_;
  Surveyor surveyor_;
  std::unique_ptr<launch::UvSignal> child_signals_;
  std::unique_ptr<IncomingLinks> incoming_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unique_ptr<Listener> rank_listener_;  // closes what it takes; it shows whether the ranks' ports can be reached
  std::list<std::unique_ptr<job::MachineSession>> sessions_;
  bool closing_ = false;
  std::string refusal_;  // of all jobs; empty where they are taken
};

}  // namespace ringlet::agent
