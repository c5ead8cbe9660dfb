#include <cstddef>

void scalar_sum_f32(float* data, const float* other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) data[i] += other[i];
}
