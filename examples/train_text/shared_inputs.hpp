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

/// The same once, among ranks that know all of it but the browsers, which know nothing in a new world. `group` has browsers. Throws the
/// group's error where a rank is lost meanwhile.
void tell_browsers(ringlet::Group& group, const Options& options, const Corpus& corpus);

/// What a rank that has joined ranks with `inner_steps` does first: the part that it has in their tell_browsers(), as long as its group has
/// browsers. Where none are left its own options and `load` count, which are the same as the others'.
SharedInputs join_inputs(ringlet::Group& group, const Options& own, const std::function<Bytes()>& load);

}  // namespace train_text
