#pragma once

#include "tools/job/machine_session.hpp"
#include "tools/launch/rank_process.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet::launch {

bool is_directory(const std::string& path);

/// This machine, for the launcher of its own user: it starts any program.
class LocalMachine final : public job::SessionHost {
 public:
  /// `loop` outlives it.
  LocalMachine(UvLoop& loop, CrewSettings settings);

  job::Offer offer(const job::Hail& hail, const LinkBinding& binding) override;
  std::optional<job::Failed> admit(job::StartRanks& start, const job::Hail& hail) override;
  std::unique_ptr<job::RankCrew> make_crew(job::CrewEvents events) override;
  void measure(const job::PathSurvey&, std::function<void(const job::SurveyedPaths&)> on_done) override { on_done({}); }

 private:
  UvLoop& loop_;
  const CrewSettings settings_;
};

}  // namespace ringlet::launch
