#include "native/elastic/row_tensors.hpp"

#include <string>

namespace ringlet::native {

std::size_t offset_in(const Shape& full, RowRange rows, std::int64_t first, std::size_t element) {
  const std::int64_t all = full.axes() == 0 ? 1 : full[0];
  return all == 0 ? 0 : full.count() / static_cast<std::size_t>(all) * element * static_cast<std::size_t>(rows.begin - first);
}

std::size_t bytes_of(const Shape& full, RowRange rows, std::size_t element) {
  return offset_in(full, {rows.end, rows.end}, rows.begin, element);
}

std::vector<RowTensor> row_tensors(const Tree& outline, std::vector<HeldPart>& parts, RowContents contents) {
  std::vector<RowTensor> tensors;
  const auto add = [&](const Tree& tree, std::size_t place, std::size_t first, const auto& parameter_of) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      if (place == 0) tensors.push_back({outline.index_of(parameter_of(tree[i].name)), {}});
      tensors[first + i].at.push_back(tree[i].values);
    }
  };
  const std::size_t parameters = contents == RowContents::state ? 0 : outline.size();
  for (std::size_t place = 0; place < parts.size() && parts[place].shard >= 0; ++place) {
    if (parameters > 0) add(parts[place].parameters, place, 0, [](const std::string& name) { return name; });
    if (contents == RowContents::parameters) continue;
    add(parts[place].optimizer->state(), place, parameters, [](const std::string& name) { return name.substr(0, name.rfind('.')); });
  }
  return tensors;
}

}  // namespace ringlet::native
