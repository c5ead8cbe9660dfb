#include "core/base/names_text.hpp"

#include "core/base/enumerators.hpp"

namespace ringlet {

static_assert(!is_enumerator<static_cast<DType>(kDTypeCount)>, "a dtype lacks its row in dtype.hpp");
static_assert(!is_enumerator<static_cast<ReduceOp>(kReduceOpCount)>, "an operation lacks its row in dtype.hpp");

std::string names_text(const std::vector<std::string_view>& names, std::string_view before_last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " " + std::string(before_last) + " " : ", ";
    text += names[i];
  }
  return text;
}

std::string names_of_dtypes(bool (*belongs)(DType) noexcept, std::string_view before_last) {
  std::vector<std::string_view> names;
  for (const detail::DTypeFacts& facts : detail::kDTypes)
    if (belongs(facts.dtype)) names.push_back(facts.name);
  return names_text(names, before_last);
}

}  // namespace ringlet
