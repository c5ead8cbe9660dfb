#include "native/scheduler.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <ringlet/error.hpp>
#include <vector>

#include "native/environment.hpp"

using namespace ringlet;
using Catch::Matchers::Contains;

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

const Values kTorch{{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};
const Values kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"OMPI_MCA_orte_hnp_uri", "93126656.0;tcp://192.0.2.2,10.0.0.2:41663;tcp6://[fd00::2]:46077"},
                      {"PMIX_NAMESPACE", "93126657"}};
const Values kHydra{
    {"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"PMI_FD", "6"}, {"MPI_LOCALNRANKS", "2"}, {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "node3"}};
const Values kSlurm{{"SLURM_PROCID", "5"},     {"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_JOB_ID", "17"},
                    {"SLURM_STEP_ID", "0"},    {"SLURM_STEP_NUM_NODES", "3"}, {"SLURM_STEP_NODELIST", "node[03-05]"},
                    {"SLURM_NTASKS", "999999"}};
const Values kKubernetes{{"JOB_COMPLETION_INDEX", "1"}, {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};

Values operator+(Values some, const Values& more) {
  for (const auto& [name, value] : more) some[name] = value;
  return some;
}

native::Variables variables(const Values& values) {
  return [values](std::string_view name) -> std::optional<std::string> {
    const auto it = values.find(name);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  };
}

struct Seen {
  native::WorldConfig config;
  std::vector<std::string> told, met;
};

Seen see(const Values& values, const InitOptions& options = {}) {
  Seen seen;
  const auto meet = [&](const native::Scheduled& scheduled) {
    seen.met.push_back(scheduled.host);
    return std::string("10.0.0.9:4000");
  };
  // Otherwise a token would be needed, or these were other worlds.
  const Values insecure = values + Values{{"RINGLET_INSECURE", "1"}};
  seen.config = native::make_world_config(
      options, native::with_scheduler(options, variables(insecure), meet, [&](const std::string& line) { seen.told.push_back(line); }));
  return seen;
}

std::string coordinator(const Values& values) { return to_string(see(values).config.meeting.coordinator.value()); }

}  // namespace

TEST_CASE("each scheduler says who is who") {
  const auto who = [](const Values& values) {
    const auto config = see(values).config;
    return std::pair(config.options.rank, config.options.size);
  };
  CHECK(who(kTorch) == std::pair(3, 8));
  CHECK(who(kOpenMpi) == std::pair(1, 4));
  CHECK(who(kHydra) == std::pair(2, 4));
  CHECK(who(kSlurm) == std::pair(5, 6));
  CHECK(who(kKubernetes + Values{{"RINGLET_WORLD_SIZE", "3"}, {"RINGLET_COORDINATOR", "job-0.peers:4711"}}) == std::pair(1, 3));
  CHECK(who({}) == std::pair(0, 1));
}

TEST_CASE("the ranks of one job meet at one place") {
  CHECK(coordinator(kTorch) == "node7:29501");
  CHECK(coordinator(kTorch + Values{{"LOCAL_WORLD_SIZE", "8"}}) == "127.0.0.1:29501");
  CHECK(coordinator(kHydra) == "10.0.0.9:4000");
  CHECK(see(kHydra).met == std::vector<std::string>{"node3"});
  CHECK(see(kHydra + Values{{"MPI_LOCALNRANKS", "4"}}).met == std::vector<std::string>{"127.0.0.1"});
  CHECK_THAT(coordinator(kOpenMpi), Catch::StartsWith("192.0.2.2:"));
  CHECK_THAT(coordinator(kOpenMpi + Values{{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}), Catch::StartsWith("127.0.0.1:"));
  CHECK(coordinator(kOpenMpi) == coordinator(kOpenMpi + Values{{"OMPI_COMM_WORLD_RANK", "2"}}));
  CHECK(coordinator(kOpenMpi) != coordinator(kOpenMpi + Values{{"PMIX_NAMESPACE", "93126658"}}));
  CHECK(coordinator(kSlurm) != coordinator(kSlurm + Values{{"SLURM_STEP_ID", "1"}}));
  CHECK_THAT(coordinator(kSlurm + Values{{"SLURM_STEP_NUM_NODES", "1"}}), Catch::StartsWith("127.0.0.1:"));
  CHECK(coordinator(kSlurm + Values{{"RINGLET_PORTS", "4000-4000"}}) == "node03:4000");
}

TEST_CASE("the first of Slurm's nodes") {
  const auto first = [](const std::string& list) {
    const std::string address = coordinator(kSlurm + Values{{"SLURM_STEP_NODELIST", list}});
    return address.substr(0, address.find(':'));
  };
  CHECK(first("node7") == "node7");
  CHECK(first("node7,node8") == "node7");
  CHECK(first("node[03-05,9]") == "node03");
  CHECK(first("node[9,03-05],gpu[1-2]") == "node9");
  CHECK(first("gpu3,node[1-4]") == "gpu3");
  CHECK(first("rack[2-3]node[07-08]") == "rack2node07");
  CHECK(first("node[1-2].lan") == "node1.lan");
}

TEST_CASE("what the user or the program says of who is who wins over a scheduler") {
  const auto by_variable = see(kSlurm + Values{{"RINGLET_RANK", "0"}, {"RINGLET_WORLD_SIZE", "1"}});
  CHECK(by_variable.config.options.size == 1);
  CHECK(see(kSlurm, {.rank = 0, .world_size = 1}).config.options.size == 1);
  CHECK(coordinator(kSlurm + Values{{"RINGLET_COORDINATOR", "10.0.0.1:5"}}) == "10.0.0.1:5");
  CHECK(to_string(see(kHydra, {.coordinator = "10.0.0.1:5"}).config.meeting.coordinator.value()) == "10.0.0.1:5");
  CHECK(see(kHydra, {.coordinator = "10.0.0.1:5"}).met.empty());
  CHECK(see(kSlurm, {.join = "10.0.0.1:5"}).config.join.size() == 1);
  CHECK(see(kSlurm + Values{{"RINGLET_SCHEDULER", "off"}}).config.options.size == 1);
}

TEST_CASE("where one scheduler has started another one, the inner one counts, or the one that is named") {
  CHECK(see(kSlurm + kOpenMpi).config.options.size == 4);
  CHECK(see(kSlurm + kHydra).config.options.rank == 2);
  CHECK(see(kSlurm + kOpenMpi + Values{{"RINGLET_SCHEDULER", "slurm"}}).config.options.size == 6);
  // Slurm offers another protocol at PMI_FD.
  CHECK(see(kSlurm + kHydra + Values{{"PMI_JOBID", "17.0"}}).config.options.rank == 5);
  // A script of sbatch is one process, though the job has tasks.
  CHECK(see({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "17"}}).config.options.size == 1);
}

TEST_CASE("rank 0 says which scheduler it was") {
  CHECK(see(kSlurm).told.empty());
  const auto told = see(kSlurm + Values{{"SLURM_PROCID", "0"}}).told;
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.front(), Contains("rank 0 of 6, by Slurm") && Contains("SLURM_PROCID") && Contains("meet at node03:"));
  CHECK(see({}).told.empty());
}

TEST_CASE("what a scheduler does not tell is asked for") {
  CHECK_THROWS_WITH(see(kKubernetes), Contains("Kubernetes") && Contains("JOB_COMPLETION_INDEX") && Contains("RINGLET_WORLD_SIZE"));
  CHECK_THROWS_WITH(see(kKubernetes + Values{{"RINGLET_WORLD_SIZE", "3"}}), Contains("RINGLET_COORDINATOR"));
  Values without_uri = kOpenMpi;
  without_uri.erase("OMPI_MCA_orte_hnp_uri");
  CHECK_THROWS_WITH(see(without_uri), Contains("Open MPI") && Contains("RINGLET_COORDINATOR"));
  CHECK_THROWS_WITH(see(kTorch + Values{{"MASTER_PORT", "65535"}}), Contains("MASTER_PORT is '65535'"));
  CHECK_THROWS_WITH(see(kSlurm + Values{{"RINGLET_SCHEDULER", "sge"}}), Contains("'sge'") && Contains("slurm") && Contains("off"));
  CHECK_THROWS_WITH(see({{"RINGLET_SCHEDULER", "slurm"}}), Contains("'slurm'") && Contains("variables"));
}
