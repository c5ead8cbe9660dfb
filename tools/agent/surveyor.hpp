#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tools/agent/path_probe.hpp"

namespace ringlet::agent {

/// The failure of a way to a machine that this one has not heard of.
inline constexpr char kNotHeard[] = "not heard here";

/// Measures this machine's ways to other agents, one after another, so that no measurement disturbs the next. Belongs to the loop's thread.
class Surveyor {
 public:
  /// The addresses of the machine with this number, the likeliest first; none: it is not known.
  using FindMachine = std::function<std::vector<Address>(std::uint64_t instance)>;
  /// Runs once, from the loop.
  using OnDone = std::function<void(const job::SurveyedPaths&)>;

  /// `loop`, `network` and `authenticator` outlive it.
  Surveyor(EventLoop& loop, Network& network, Authenticator& authenticator, ProbeEnds ends, FindMachine find_machine);

  /// Begins when the measurements that are under way are done. For each machine the first address that works counts, else the failure of
  /// the last one.
  void measure(const job::PathSurvey& survey, OnDone on_done);

 private:
  struct Task {
    std::vector<std::uint64_t> instances;
    OnDone on_done;
    job::SurveyedPaths found;
    std::size_t at = 0;  // in instances
    std::vector<Address> addresses;
    std::size_t next_address = 0;
  };
  void go_on();
  void on_measured(const PathQuality& quality);
  void note(job::SurveyedPath path);

  EventLoop& loop_;
  Network& network_;
  Authenticator& authenticator_;
  const ProbeEnds ends_;
  const FindMachine find_machine_;
  std::deque<Task> tasks_;
  std::unique_ptr<PathProbe> probe_;
};

}  // namespace ringlet::agent
