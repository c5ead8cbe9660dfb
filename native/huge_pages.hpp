#pragma once

#include "core/base/bytes.hpp"

namespace ringlet::native {

/// Asks the system to put this memory, which is in use, into huge pages, as far as it has whole ones. Its content stays. Takes as long as a
/// few copies of it. Returns false if the system took much longer, or gives no huge pages: not worth asking again.
bool gather_into_huge_pages(ConstBytes memory);

}  // namespace ringlet::native
