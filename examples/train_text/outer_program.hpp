#pragma once

#include <ringlet/group.hpp>

#include "corpus.hpp"
#include "options.hpp"

namespace train_text {

/// Runs the program with `inner_steps`, prints rank 0's report and writes the logs. Returns whether these have all that they should.
/// Collective, except where this rank joins others.
bool run_outer(const Options& options, const Corpus& corpus, ringlet::Group group, bool joins);

}  // namespace train_text
