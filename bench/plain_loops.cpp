// These loops show what the compiler reaches where nothing has to be aligned, unrolled or chosen at run time.
#include <cmath>
#include <cstddef>

void plain_sum_f32(float* __restrict data, const float* __restrict other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) data[i] += other[i];
}

void plain_adamw_f32(float* __restrict parameters, const float* __restrict gradients, float* __restrict m, float* __restrict v,
                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    m[i] = 0.9F * m[i] + 0.1F * gradients[i];
    v[i] = 0.999F * v[i] + 0.001F * (gradients[i] * gradients[i]);
    parameters[i] = 0.99999F * parameters[i] - 1e-3F * m[i] / (std::sqrt(v[i]) + 1e-8F);
  }
}
