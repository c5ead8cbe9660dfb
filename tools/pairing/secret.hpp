#pragma once

#include <openssl/crypto.h>

#include <string_view>
#include <vector>

namespace ringlet::pairing {

/// A text that is wiped from memory on destruction. Moving leaves no copy behind.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view text) : text_(text.begin(), text.end()) {}
  Secret(Secret&& other) noexcept : text_(std::move(other.text_)) {}
  Secret& operator=(Secret&& other) noexcept {
    text_.swap(other.text_);
    return *this;
  }
  ~Secret() { OPENSSL_cleanse(text_.data(), text_.size()); }

  std::string_view view() const noexcept { return {text_.data(), text_.size()}; }
  bool empty() const noexcept { return text_.empty(); }

 private:
  std::vector<char> text_;  // a std::string would keep short texts inside itself, where moving leaves a copy
};

}  // namespace ringlet::pairing
