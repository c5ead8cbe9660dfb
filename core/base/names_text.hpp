#pragma once

#include <ringlet/dtype.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet {

/// Joins names as in "sum, max or min", where `before_last` is "or".
std::string names_text(const std::vector<std::string_view>& names, std::string_view before_last);

/// Joins the names of the dtypes for which `belongs` is true.
std::string names_of_dtypes(bool (*belongs)(DType) noexcept, std::string_view before_last);

}  // namespace ringlet
