#pragma once

#include <stdexcept>

namespace train_text {

/// An option, a file or a text given by the user cannot be used for training. The message is one sentence; the program ends with exit code
/// 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace train_text
