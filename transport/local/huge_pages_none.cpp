#include "transport/local/huge_pages.hpp"

namespace ringlet::local {

bool gather_into_huge_pages(ConstBytes) { return false; }

}  // namespace ringlet::local
