#include "core/engine/procedure_run.hpp"

#include <deque>
#include <string>
#include <utility>

#include "core/base/check.hpp"

namespace ringlet {

namespace {

/// A procedure under way; the completions of its collectives share it.
class ProcedureRun : public std::enable_shared_from_this<ProcedureRun> {
 public:
  ProcedureRun(std::shared_ptr<Procedure> procedure, std::vector<GroupEngine*> groups, std::uint16_t stream, Completion completion,
               std::optional<Duration> timeout)
      : procedure_(std::move(procedure)),
        groups_(std::move(groups)),
        stream_(stream),
        completion_(std::move(completion)),
        timeout_(timeout) {}

  /// Runs as far as possible without waiting. Returns true once the procedure has ended.
  bool advance();
  void finish() {
    procedure_.reset();
    completion_(failure_);
  }

 private:
  /// Whether the last action that next() returned has been carried out.
  bool may_go_on();
  bool ended() const { return ended_ && under_way_ == 0; }
  void obey(Procedure::Action action);
  std::shared_ptr<bool> started() { return started_.emplace_back(std::make_shared<bool>(false)); }
  template <class Task>
  void start(Task task, std::size_t group, void (GroupEngine::*give)(std::uint16_t, Task), std::shared_ptr<bool> done);

  std::shared_ptr<Procedure> procedure_;
  const std::vector<GroupEngine*> groups_;
  const std::uint16_t stream_;
  const Completion completion_;
  const std::optional<Duration> timeout_;
  std::deque<std::shared_ptr<bool>> started_;  // whether it is done, the oldest first
  std::shared_ptr<bool> awaited_;
  std::size_t under_way_ = 0;
  bool ended_ = false;
  Status failure_;
};

bool ProcedureRun::may_go_on() {
  if (ended_ || (awaited_ && !*awaited_)) return false;
  awaited_.reset();
  return true;
}

bool ProcedureRun::advance() {
  while (may_go_on()) obey(procedure_->next());
  if (!ended()) return false;
  if (!failure_.ok()) procedure_->abandon();
  return true;
}

void ProcedureRun::obey(Procedure::Action action) {
  if (auto* run = std::get_if<Procedure::Run>(&action)) {
    awaited_ = std::make_shared<bool>(false);
    start(std::move(run->task), run->group, &GroupEngine::start, awaited_);
  } else if (auto* begin = std::get_if<Procedure::Start>(&action)) {
    start(std::move(begin->task), begin->group, &GroupEngine::start, started());
  } else if (auto* sending = std::get_if<Procedure::Send>(&action)) {
    start(std::move(sending->task), sending->group, &GroupEngine::send, started());
  } else if (auto* receiving = std::get_if<Procedure::Receive>(&action)) {
    start(std::move(receiving->task), receiving->group, &GroupEngine::receive, started());
  } else if (std::holds_alternative<Procedure::WaitForOldest>(action)) {
    RINGLET_CHECK(!started_.empty());
    awaited_ = std::move(started_.front());
    started_.pop_front();
  } else {
    ended_ = true;
    if (failure_.ok()) failure_ = std::get_if<Procedure::Done>(&action)->status;
  }
}

template <class Task>
void ProcedureRun::start(Task task, std::size_t group, void (GroupEngine::*give)(std::uint16_t, Task), std::shared_ptr<bool> done) {
  ++under_way_;
  if (timeout_) task.timeout = *timeout_;
  task.completion = [self = shared_from_this(), done = std::move(done)](const Status& status) {
    *done = true;
    --self->under_way_;
    if (!status.ok()) {
      if (self->failure_.ok()) self->failure_ = status;
      self->ended_ = true;
    }
    if (self->advance()) self->finish();
  };
  (groups_[group]->*give)(stream_, std::move(task));
}

}  // namespace

void run_procedure(EventLoop& loop, std::shared_ptr<Procedure> procedure, std::vector<GroupEngine*> groups, std::uint16_t stream,
                   Completion completion, std::optional<Duration> timeout) {
  if (stream >= GroupEngine::kMaxStreams) {
    loop.defer([completion = std::move(completion), stream] {
      completion({Errc::invalid_argument, "stream " + std::to_string(stream) + " does not exist; streams are numbered 0 to " +
                                              std::to_string(GroupEngine::kMaxStreams - 1)});
    });
    return;
  }
  const auto run = std::make_shared<ProcedureRun>(std::move(procedure), std::move(groups), stream, std::move(completion), timeout);
  if (run->advance()) loop.defer([run] { run->finish(); });
}

}  // namespace ringlet
