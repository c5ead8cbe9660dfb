#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "transport/crypto/aes_hardware.hpp"

namespace ringlet {

bool has_aes_hardware() {
  constexpr unsigned long kNeeded = HWCAP_AES | HWCAP_PMULL;
  return (getauxval(AT_HWCAP) & kNeeded) == kNeeded;
}

}  // namespace ringlet
