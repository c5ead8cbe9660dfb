#include "native/scheduler.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <ringlet/error.hpp>
#include <utility>

#include "core/base/address.hpp"
#include "core/base/hash.hpp"
#include "core/base/refuse.hpp"
#include "core/rendezvous/meeting_options.hpp"
#include "native/own_process.hpp"
#include "native/pmi.hpp"

namespace ringlet::native {

namespace {

/// Below those that systems give to sockets that ask for any.
constexpr PortRange kDerivedPorts{20'000, 31'999};
constexpr Duration kFarewellTimeout = Duration::seconds(3);

std::string at(const std::string& host, int port) { return to_string(Address{host, static_cast<std::uint16_t>(port)}); }

/// torchrun, and whoever else sets torch's variables. torch's own store listens at MASTER_PORT.
std::optional<Scheduled> find_torch(const Variables& variables) {
  const auto rank = variables("RANK"), size = variables("WORLD_SIZE"), host = variables("MASTER_ADDR"), port = variables("MASTER_PORT");
  if (!rank || !size || !host || !port) return std::nullopt;
  const auto number = static_cast<int>(parse_integer({"MASTER_PORT", *port}, 1, 65'534));
  const bool is_one_machine = variables("LOCAL_WORLD_SIZE") == size;
  return Scheduled{.scheduler = "torchrun",
                   .source = "RANK, WORLD_SIZE, MASTER_ADDR, and the port after MASTER_PORT",
                   .rank = *rank,
                   .size = size,
                   .coordinator = at(is_one_machine ? "127.0.0.1" : *host, number + 1)};
}

/// The first address in "93126656.0;tcp://192.0.2.2,10.0.0.2:41663;tcp6://[fd00::2]:46077", where mpirun runs.
std::optional<std::string> host_of_mpirun(const std::string& uri) {
  const auto begin = uri.find("tcp://");
  if (begin == std::string::npos) return std::nullopt;
  const std::string rest = uri.substr(begin + 6);
  const std::string host = rest.substr(0, rest.find_first_of(",:;"));
  return host.empty() ? std::nullopt : std::optional(host);
}

std::optional<Scheduled> find_open_mpi(const Variables& variables) {
  const auto rank = variables("OMPI_COMM_WORLD_RANK"), size = variables("OMPI_COMM_WORLD_SIZE");
  if (!rank || !size) return std::nullopt;
  Scheduled result{.scheduler = "Open MPI", .source = "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE", .rank = *rank, .size = size};
  std::optional<std::string> host;
  if (variables("OMPI_COMM_WORLD_LOCAL_SIZE") == size)
    host = "127.0.0.1";
  else if (const auto uri = variables("OMPI_MCA_orte_hnp_uri"))
    host = host_of_mpirun(*uri);
  const auto job = first_set(variables, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  if (host && job) result.coordinator = derived_coordinator(variables, *host, job->value);
  return result;
}

/// MPICH's hydra. What Slurm offers by PMI_FD is another protocol, and Slurm's own variables say all.
std::optional<Scheduled> find_hydra(const Variables& variables) {
  const auto rank = variables("PMI_RANK"), size = variables("PMI_SIZE"), descriptor = variables("PMI_FD");
  if (!rank || !size || !descriptor || variables("PMI_JOBID")) return std::nullopt;
  const bool is_one_machine = variables("MPI_LOCALNRANKS") == size;
  return Scheduled{.scheduler = "MPICH",
                   .source = "PMI_RANK, PMI_SIZE, PMI_FD",
                   .rank = *rank,
                   .size = size,
                   .pmi_descriptor = static_cast<int>(parse_integer({"PMI_FD", *descriptor}, 0, 1 << 20)),
                   .host = is_one_machine ? "127.0.0.1" : variables("MPIR_CVAR_CH3_INTERFACE_HOSTNAME").value_or("")};
}

/// The first name of Slurm's lists: "node[01-04,7],gpu3" has "node01".
std::string first_of_hostlist(const std::string& list) {
  const auto bracket = list.find_first_of("[,");
  if (bracket == std::string::npos || list[bracket] == ',') return list.substr(0, bracket);
  const auto close = list.find(']', bracket);
  const auto end = list.find_first_of("-,]", bracket);
  if (close == std::string::npos || end == std::string::npos) return list;
  // Whatever follows the brackets belongs to every name, and may have brackets itself.
  const auto rest = list.substr(close + 1, list.find(',', close) - close - 1);
  return first_of_hostlist(list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + rest);
}

/// Where the tasks are those of `srun`. A batch script itself has other variables of its job, but is one process alone.
std::optional<Scheduled> find_slurm(const Variables& variables) {
  const auto rank = variables("SLURM_PROCID"), size = variables("SLURM_STEP_NUM_TASKS"), job = variables("SLURM_JOB_ID");
  if (!rank || !size || !job) return std::nullopt;
  Scheduled result{.scheduler = "Slurm", .source = "SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST", .rank = *rank, .size = size};
  const bool is_one_machine = variables("SLURM_STEP_NUM_NODES") == "1";
  const auto nodes = variables("SLURM_STEP_NODELIST");
  if (is_one_machine || nodes)
    result.coordinator = derived_coordinator(variables, is_one_machine ? "127.0.0.1" : first_of_hostlist(*nodes),
                                             *job + "." + variables("SLURM_STEP_ID").value_or(""));
  return result;
}

/// A pod of an indexed job is called as the job with its index, and with a headless service others find it under that name.
std::optional<Scheduled> find_kubernetes(const Variables& variables) {
  const auto rank = variables("JOB_COMPLETION_INDEX");
  if (!rank || !variables("KUBERNETES_SERVICE_HOST")) return std::nullopt;
  return Scheduled{.scheduler = "Kubernetes", .source = "JOB_COMPLETION_INDEX", .rank = *rank};
}

struct Finder {
  std::string_view name;
  std::optional<Scheduled> (*find)(const Variables&);
};
/// mpirun may have been started by Slurm, whose variables its ranks then inherit.
constexpr std::array kFinders{Finder{"torchrun", find_torch}, Finder{"openmpi", find_open_mpi}, Finder{"mpich", find_hydra},
                              Finder{"slurm", find_slurm}, Finder{"kubernetes", find_kubernetes}};

/// What happens once in a process, which may form several groups. A forked one has met where the other has.
class JobMeeting {
 public:
  std::string coordinator(const Scheduled& scheduled, const InitOptions& options) {
    if (!met_at_.empty()) return met_at_;
    const Duration timeout = duration_setting(options.connect_timeout, "the option connect_timeout", process_variable,
                                              "RINGLET_CONNECT_TIMEOUT_MS", MeetingOptions{}.timeout);
    PmiClient manager(*scheduled.pmi_descriptor, timeout, options.interrupted);
    const auto given = scheduled.rank == "0" ? std::optional(scheduled.host) : std::nullopt;
    const std::string host = is_loopback({scheduled.host, 0}) ? scheduled.host : manager.share("ringlet-coordinator", given);
    met_at_ = derived_coordinator(process_variable, host, manager.job());
    finish_at_exit(*scheduled.pmi_descriptor);
    return met_at_;
  }
  void tell(const std::string& line) {
    if (!std::exchange(has_told_, true)) std::fputs(line.c_str(), stderr);
  }

 private:
  /// Whoever ends without it looks to the manager like a process that has failed. An MPI of this process may have closed its descriptor by
  /// then, whose number may be that of something else.
  static void finish_at_exit(int descriptor) {
    static const OwnProcess process;
    static const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0) throw IoError({Errc::io_error, "no descriptor is left; allow this process more (ulimit -n)"});
    run_at_exit([] {
      if (process.is_here()) PmiClient(own, kFarewellTimeout, {}).finish();
    });
  }

  std::string met_at_;
  bool has_told_ = false;
};

/// What the scheduler does not say the user has to.
void check_complete(const Scheduled& found, const Variables& variables, bool is_coordinator_known) {
  if (!found.size && !variables("RINGLET_WORLD_SIZE"))
    refuse(fmt::format("{} has given this process its rank ({}), but does not tell how many ranks there are; set RINGLET_WORLD_SIZE",
                       found.scheduler, found.source));
  if (found.coordinator || found.pmi_descriptor || is_coordinator_known) return;
  if (found.size == "1") return;
  refuse(
      fmt::format("{} has given this process its rank ({}), but does not tell where rank 0 is; set RINGLET_COORDINATOR to host:port of "
                  "the machine on which rank 0 runs, on all ranks",
                  found.scheduler, found.source));
}

}  // namespace

std::optional<Scheduled> find_scheduler(const Variables& variables) {
  const std::string wanted = variables("RINGLET_SCHEDULER").value_or("auto");
  if (wanted == "off") return std::nullopt;
  std::string names;
  for (const Finder& finder : kFinders) {
    names += fmt::format(", {}", finder.name);
    if (wanted != "auto" && wanted != finder.name) continue;
    auto found = finder.find(variables);
    if (found) return found;
    if (wanted == finder.name) refuse(fmt::format("RINGLET_SCHEDULER is '{}', whose variables this process does not have", wanted));
  }
  if (wanted != "auto") refuse(fmt::format("RINGLET_SCHEDULER is '{}'; it may be auto, off{}", wanted, names));
  return std::nullopt;
}

std::string derived_coordinator(const Variables& variables, const std::string& host, std::string_view job) {
  const auto allowed = ports_setting(variables);
  if (!allowed.ok()) refuse(allowed.status().text());
  const PortRange range = allowed.value().any() ? kDerivedPorts : allowed.value();
  const std::uint64_t hash = hash_of(job);
  return at(host, range.first + static_cast<int>(hash % static_cast<std::uint64_t>(range.count())));
}

Variables with_scheduler(const InitOptions& options, const Variables& variables, const std::function<std::string(const Scheduled&)>& meet,
                         const std::function<void(const std::string&)>& tell) {
  if (options.rank || options.join || first_set(variables, {"RINGLET_RANK", "MLX_RANK", "RINGLET_JOIN"})) return variables;
  const auto found = find_scheduler(variables);
  if (!found) return variables;
  const bool is_place_told =
      options.coordinator || options.hostfile || first_set(variables, {"RINGLET_COORDINATOR", "RINGLET_HOSTFILE", "MLX_HOSTFILE"});
  check_complete(*found, variables, is_place_told);
  std::map<std::string, std::string, std::less<>> added{{"RINGLET_RANK", found->rank}};
  if (found->size && !variables("RINGLET_WORLD_SIZE")) added["RINGLET_WORLD_SIZE"] = *found->size;
  if (!is_place_told && found->size != "1") added["RINGLET_COORDINATOR"] = found->coordinator ? *found->coordinator : meet(*found);
  if (found->rank == "0") {
    const auto coordinator = added.find("RINGLET_COORDINATOR");
    tell(fmt::format("ringlet: rank 0{}, by {} ({}){}\n", found->size ? " of " + *found->size : "", found->scheduler, found->source,
                     coordinator == added.end() ? "" : "; the ranks meet at " + coordinator->second));
  }
  return [added = std::move(added), variables](std::string_view name) -> std::optional<std::string> {
    const auto value = added.find(name);
    return value == added.end() ? variables(name) : std::optional(value->second);
  };
}

Variables process_variables(const InitOptions& options) {
  static PerProcess<std::mutex> one_at_a_time;
  static JobMeeting meeting;
  const std::lock_guard lock(one_at_a_time.get());
  return with_scheduler(
      options, process_variable, [&](const Scheduled& scheduled) { return meeting.coordinator(scheduled, options); },
      [&](const std::string& line) { meeting.tell(line); });
}

}  // namespace ringlet::native
