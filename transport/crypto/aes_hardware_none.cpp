#include "transport/crypto/aes_hardware.hpp"

namespace ringlet {

bool has_aes_hardware() { return false; }

}  // namespace ringlet
