#pragma once

namespace ringlet {

/// Whether this processor has instructions for AES and for GCM's multiplication.
bool has_aes_hardware();

}  // namespace ringlet
