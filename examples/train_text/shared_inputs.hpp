#pragma once

#include <functional>
#include <ringlet/group.hpp>

#include "corpus.hpp"
#include "options.hpp"

namespace train_text {

/// The options and the text that a native rank trains with.
struct SharedInputs {
  Options options;
  Corpus corpus;
  /// Tells the user which of this rank's own options are ignored because rank 0's count. Empty if there are none.
  std::string overruled;
  /// Whether the run has begun already, and this rank has joined it or is one of those that it has joined.
  bool running = false;
};

/// Rank 0 sends its settings and its text to all ranks. Only rank 0 calls `load`, which returns the text. The other ranks' settings are
/// ignored; their remaining options count. Collective. If ranks of an elastic group are lost meanwhile,
/// `group` becomes that of the others, and a rank that is rank 0 now calls `load`. If rank 0 cannot begin, throws `InputError` with rank
/// 0's reason on all ranks. `running` is rank 0's: see Announcement.
SharedInputs share_inputs(ringlet::Group& group, const Options& own, const std::function<Bytes()>& load, bool running = false);

}  // namespace train_text
