#pragma once

#include <stdexcept>

namespace train_text {

/// What the user gave cannot be trained with: an option, a file, a text. One sentence; the program ends with exit code 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace train_text
