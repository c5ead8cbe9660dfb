#include "transport/uv/interface_traits.hpp"

namespace ringlet::uv {

InterfaceTraits traits_of(const std::string&) { return {}; }

}  // namespace ringlet::uv
