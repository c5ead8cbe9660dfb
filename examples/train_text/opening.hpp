#pragma once

#include <functional>
#include <ringlet/group.hpp>

#include "corpus.hpp"
#include "options.hpp"

namespace train_text {

/// What a native rank trains with.
struct Opening {
  Options options;
  Corpus corpus;
  /// For a person: which of this rank's own options do not count because rank 0's do. Empty: none.
  std::string overruled;
};

/// Rank 0 sends its settings and its text to all ranks; `load`, which gives the text, is called there only. Of the others' options only
/// what is not a setting counts. Collective. Throws `InputError` on all ranks alike where rank 0 cannot begin, and with it the reason.
Opening open_run(ringlet::Group& group, const Options& own, const std::function<Bytes()>& load);

}  // namespace train_text
