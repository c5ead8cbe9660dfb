#include "native/agreement.hpp"

#include "core/gradients/tree_agreement.hpp"
#include "native/procedure_driver.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

void require_same_tree(Group& group, std::string_view call, const Tree& tree, Stream stream) {
  SharedGroup& shared = group.shared();
  TreeAgreement agreement(shared.engine(), shared.agreements(), std::string(call), tree);
  ProcedureDriver({group}, stream).drive(agreement);
}

}  // namespace ringlet::native
