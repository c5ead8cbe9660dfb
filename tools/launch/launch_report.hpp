#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/job/job_result.hpp"

namespace ringlet::launch {

/// Says on stderr why the job could not be carried out or, unless `quiet`, how it ended; returns the exit code.
int report(const std::string& subcommand, const job::JobResult& result, bool quiet = false);

/// exit_code, first_failed and, for each rank, rank, pid, code, signal, stopped, where it ran as `machine_key` unless that was here, and
/// lost if it was; what does not apply is null.
nlohmann::ordered_json to_json(const job::JobResult& result, const char* machine_key);

}  // namespace ringlet::launch
