#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/world.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/link_race.hpp"
#include "core/rendezvous/opening.hpp"
#include "core/rendezvous/reception.hpp"
#include "core/rendezvous/seats.hpp"

namespace ringlet {

struct MeetingOptions {
  /// Where rank 0 listens and all others dial. Unset: `roster` says where each rank listens.
  std::optional<Address> coordinator;
  /// Each rank's addresses, all of which it listens on.
  std::vector<std::vector<Address>> roster;
  /// With a coordinator: where this rank listens; port 0 is on rank 0 the coordinator's. Unset: rank 0 at the coordinator's address, the
  /// others where it can be reached.
  std::optional<Address> listen_at;
  /// Hosts where it listens, too, at the same port, as far as that works.
  std::vector<std::string> also_at{};
  /// With a coordinator: what the others are told of where this rank can be reached, the likeliest first. Port 0: the one where it listens
  /// at this host; then it is told only if it does.
  std::vector<wire::Endpoint> endpoints{};
  /// The address at which rank 0 sees this rank is not told to the others.
  bool only_endpoints = false;
  /// This machine's addresses, to tell by which interface a link leaves.
  std::vector<wire::Endpoint> interfaces{};
  /// Where ranks have several addresses, links leave by these interfaces only.
  bool only_these_interfaces = false;
  Duration timeout = Duration::seconds(60);
  /// Tells this world from others: random on rank 0 of a coordinator, a hash of the roster otherwise.
  std::uint64_t world_id = 0;
  std::string name{};  // a guest's, for people
  /// On a guest, while it waits: how many ranks are there now.
  std::function<void(int present)> on_present{};
  /// On rank 0, while it waits for guests: who of them is there, by seat, whenever that may have changed.
  std::function<void(const std::vector<std::string>& names)> on_guests{};
  /// What its dials ask for; null: nothing. Outlives the meeting.
  Shortcut* shortcut = nullptr;
};

/// Brings the ranks of a world together: every pair gets one link, and no rank goes on before all have all. Of two native ranks the higher
/// dials, and where the other has several addresses the fastest is taken (link_race.hpp), also instead of the link to rank 0 over which it
/// joined; a guest dials every native rank; two guests both dial a native rank, which relays. A guest's world has its session with rank 0
/// already (guest_entry.hpp), and its options name rank 0 as the coordinator, as the guest has reached it.
/// While it lives, in a world with guests also after all have met, it tells newcomers that the group is complete.
/// Belongs to the loop's thread.
class Meeting final : private SessionOwner {
 public:
  /// Takes the links that `reception`, null on a guest, authenticates while it lives. All outlive it.
  Meeting(EventLoop& loop, Network& network, Authenticator& authenticator, Reception* reception, World& world, MeetingOptions options);
  ~Meeting();

  /// Where a listening socket was inherited: a listener that gives its links to the reception. Before start().
  void use_listener(std::unique_ptr<Listener> listener) { listeners_.push_back(std::move(listener)); }

  /// `on_met` runs once, from the loop: ok, or why the ranks have not met. The world has failed then.
  void start(std::function<void(const Status&)> on_met);

  /// Once all have met, the same number on all ranks.
  std::uint64_t world_id() const { return options_.world_id; }

 private:
  /// Takes a stranger's first message.
  class StrangerSink final : public GatheringSink {
   public:
    StrangerSink(Meeting& meeting, Session& session) : meeting_(meeting), session_(session) {}
    void frame_ended() override { meeting_.on_stranger_spoke(session_, gathered()); }

   private:
    Meeting& meeting_;
    Session& session_;
  };
  /// A connection that was accepted and has not said yet who it is.
  struct Stranger {
    std::unique_ptr<Session> session;
    std::unique_ptr<StrangerSink> sink;
    int candidate_of = -1;  // a candidate of this rank's for the link with it
    std::size_t probes = 0;
    bool asked = false;  // it has my word
    wire::Path path{};   // as it told
  };
  /// Attempts to reach one rank.
  struct Dial {
    int rank = 0;
    bool relayed = false;  // the addresses are the relay's
    Address address{};
    Duration pause = Duration::milliseconds(20);
    int refusals = 0;  // in a row
    std::string last_error{};
  };

  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;

  struct Race {
    int rank = 0;
    std::unique_ptr<LinkRace> race;
  };

  bool coordinates() const { return options_.coordinator.has_value(); }
  int rank() const { return world_.options().rank; }
  int size() const { return world_.options().size; }
  int natives() const { return world_.options().natives(); }
  bool is_guest() const { return world_.options().is_guest(rank()); }
  Status listen();
  void listen_also();
  std::vector<wire::Endpoint> own_endpoints() const;
  void begin_dialling();
  void add_dial(int peer, Address address, bool relayed = false);
  void add_link(int peer, std::vector<wire::Endpoint> targets);
  void on_link_won(int peer, Result<LinkRace::Winner> outcome);
  void dial(std::size_t index);
  void on_dialled(std::size_t index, Result<std::unique_ptr<Link>> link);
  void on_dial_failed(std::size_t index, const Status& status);
  void on_stranger(std::unique_ptr<Link> link);
  wire::RankSettings settings() const;
  wire::Join make_join() const;
  void on_seat_request(Session& session, const wire::SeatRequest& request);
  int present() const;
  void tell_guests();
  std::vector<wire::Endpoint> targets_in(wire::Member member) const;
  bool is_here(int native) const;
  wire::Roster make_roster() const;
  Status group_is_complete() const;
  void on_stranger_spoke(Session& session, ConstBytes payload);
  void on_join(Session& session, const wire::Join& join);
  void on_connect(Session& session, const wire::Connect& connect);
  Stranger* find_stranger(const Session& session);
  void on_propose(Session& session, const wire::Propose& propose);
  void on_candidate_spoke(Stranger& stranger, const std::optional<wire::ControlMessage>& message);
  void on_confirmed(Stranger& stranger);
  void say(Session& session, const wire::ControlMessage& message);
  void let_go(std::unique_ptr<Session> session);
  void put_aside(std::unique_ptr<Session> session);
  void on_session_over(Session& session);
  /// False: another world, which has been told to this one, or another mistake.
  bool is_admissible(Session& session, const wire::RankSettings& settings);
  Status check_settings(const wire::RankSettings& settings) const;
  void on_control(int from, const wire::ControlMessage& message);
  void on_roster(const wire::Roster& roster);
  void reject(Session& session, const Status& status);
  /// Tells why, as the last thing.
  void send_off(std::unique_ptr<Session> session, const Status& status);
  std::unique_ptr<Session> take_stranger(Session& session);
  void drop_stranger(Session& session);
  void begin_linking_if_complete();
  void open_if_linked();
  std::vector<int> missing() const;
  void set_deadline(Duration delay);
  void on_deadline();
  void stop_races();
  void finish(const Status& status);

  EventLoop& loop_;
  Network& network_;
  Reception* reception_;
  World& world_;
  Dialler dialler_;
  MeetingOptions options_;
  std::function<void(const Status&)> on_met_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<Stranger> strangers_;
  std::deque<std::unique_ptr<Session>> leaving_;  // until what was said last has had time to get through
  std::vector<Dial> dials_;
  std::vector<Race> races_;
  std::unique_ptr<Session> joined_by_;               // with rank 0, after another took its place, until rank 0 has ended it
  std::vector<std::optional<wire::Member>> joined_;  // rank 0: where the others listen
  std::vector<bool> linked_;                         // by rank: the link is there and both sides know it
  std::vector<std::pair<Session*, std::variant<wire::Connect, wire::Propose>>> held_;  // links that came before the roster
  std::unique_ptr<Seats> seats_;                                                       // rank 0, until the group is complete
  bool roster_known_ = false;
  bool complete_ = false;  // rank 0: everyone is there, and was told of the others
  bool met_ = false;       // and newcomers are told so
  bool grace_given_ = false;
  Opening opening_;
  TimerId deadline_timer_ = 0;
  std::shared_ptr<bool> alive_;
};

}  // namespace ringlet
