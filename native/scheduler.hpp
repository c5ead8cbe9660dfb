#pragma once

#include <functional>
#include <optional>
#include <ringlet/init_options.hpp>
#include <string>
#include <string_view>

#include "native/setting.hpp"

namespace ringlet::native {

/// What the scheduler that started this process has told it.
struct Scheduled {
  std::string scheduler{};  // "Slurm"
  std::string source{};     // the variables that it is from, for people
  std::string rank{};
  std::optional<std::string> size{};  // Kubernetes does not tell it
  std::optional<std::string> coordinator{};
  std::optional<int> pmi_descriptor{};  // of hydra, which is asked for the coordinator
  std::string host{};                   // with pmi_descriptor: by what the other ranks reach this one
};

/// Reads the variables of torchrun, Open MPI, MPICH's hydra, Slurm and Kubernetes' indexed jobs; nothing where none of them has started
/// this process. RINGLET_SCHEDULER names the only one to look for, or says `off`. Throws `InvalidArgument` where it names another, and
/// where a scheduler's variables do not say where rank 0 is.
std::optional<Scheduled> find_scheduler(const Variables& variables);

/// Where ranks meet whose scheduler gives them no port: the same for all ranks of a job, and most often not that of another job.
std::string derived_coordinator(const Variables& variables, const std::string& host, std::string_view job);

/// The variables, and RINGLET_RANK, RINGLET_WORLD_SIZE and RINGLET_COORDINATOR as the scheduler has them, where neither the variables nor
/// the options say who is who. `meet` finds out the coordinator by `pmi_descriptor`. `tell` gets what was taken, for people, on rank 0.
Variables with_scheduler(const InitOptions& options, const Variables& variables, const std::function<std::string(const Scheduled&)>& meet,
                         const std::function<void(const std::string&)>& tell);

/// with_scheduler() of the process' environment.
Variables process_variables(const InitOptions& options);

}  // namespace ringlet::native
