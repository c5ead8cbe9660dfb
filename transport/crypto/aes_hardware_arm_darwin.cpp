#include "transport/crypto/aes_hardware.hpp"

namespace ringlet {

// Every arm64 processor that runs macOS has them.
bool has_aes_hardware() { return true; }

}  // namespace ringlet
