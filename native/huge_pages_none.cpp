#include "native/huge_pages.hpp"

namespace ringlet::native {

bool gather_into_huge_pages(ConstBytes) { return false; }

}  // namespace ringlet::native
