#pragma once

#include <string>

#include "tools/job/job_result.hpp"

namespace ringlet::launch {

/// Says on stderr why the job could not be carried out or, unless `quiet`, how it ended; returns the exit code.
int report(const std::string& subcommand, const job::JobResult& result, bool quiet = false);

/// One line of JSON without a newline: exit_code, first_failed and, for each rank, rank, pid, code, signal, stopped; what does not apply is
/// null.
std::string to_json(const job::JobResult& result);

}  // namespace ringlet::launch
