#include "transport/crypto/aes_hardware.hpp"

namespace ringlet {

bool has_aes_hardware() { return __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0; }

}  // namespace ringlet
