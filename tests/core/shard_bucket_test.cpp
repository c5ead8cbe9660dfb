#include <catch2/catch.hpp>
#include <numeric>

#include "core/sharding/shard_bucket.hpp"

using namespace ringlet;

namespace {

/// Tensors of several shapes, whose elements are numbered throughout.
struct PackedModel {
  std::vector<float> weight = std::vector<float>(15), bias = std::vector<float>(3), scalar = std::vector<float>(1),
                     strided = std::vector<float>(14);

  PackedModel() {
    float next = 0;
    for (auto* values : {&weight, &bias, &scalar, &strided})
      for (float& value : *values) value = next++;
  }
  Tree tree() {
    return {{"weight", {weight.data(), DType::f32, Shape{5, 3}}},
            {"bias", bias},
            {"scalar", {scalar.data(), DType::f32, Shape{}}},
            {"strided", {strided.data(), DType::f32, Shape{7}, std::array<std::int64_t, 1>{2}}}};
  }
};

std::vector<std::string> names_of(const Tree& tree) {
  std::vector<std::string> names;
  for (const Leaf& leaf : tree) names.push_back(leaf.name);
  return names;
}

}  // namespace

TEST_CASE("what is packed is every rank's rows of every tensor, rank after rank") {
  const int ranks = GENERATE(1, 2, 3, 4, 8);
  const simd::Kernels& kernels = *simd::find("scalar");
  PackedModel model;
  const Tree full = model.tree();
  const ShardLayout layout(full, ranks);
  ShardBucket bucket(layout, names_of(full), {DType::f32});
  bucket.pack_full(full, kernels);
  std::vector<float> expected;
  for (int rank = 0; rank < ranks; ++rank) {
    const Tree shards = layout.shard(full, rank);
    CHECK(bucket.counts()[static_cast<std::size_t>(rank)] == static_cast<std::int64_t>(shards.count()));
    for (const Leaf& leaf : shards) {
      const Tensor packed = Tensor::copy_of(leaf.values);
      expected.insert(expected.end(), packed.values<float>().begin(), packed.values<float>().end());
    }
  }
  const auto* packed = reinterpret_cast<const float*>(bucket.packed().data());
  CHECK(std::vector<float>(packed, packed + bucket.packed().count()) == expected);
}

TEST_CASE("full tensors and shards survive packing and unpacking") {
  const int ranks = GENERATE(1, 2, 3, 8);
  const DType wire = GENERATE(DType::f32, DType::bf16, DType::f64);
  const simd::Kernels& kernels = *simd::find("scalar");
  PackedModel model, other;
  const Tree full = model.tree();
  const ShardLayout layout(full, ranks);
  for (auto* values : {&other.weight, &other.bias, &other.scalar, &other.strided}) std::fill(values->begin(), values->end(), -1.f);

  SECTION("each rank packs its own part; all parts make the full tensors") {
    ShardBucket bucket(layout, names_of(full), {wire});
    for (int rank = 0; rank < ranks; ++rank) bucket.pack_shards(layout.shard(full, rank), rank, kernels);
    bucket.unpack_full(other.tree(), kernels);
  }
  SECTION("a reduced part becomes a rank's shards") {
    ShardBucket bucket(layout, names_of(full), {wire});
    bucket.pack_full(full, kernels);
    for (int rank = 0; rank < ranks; ++rank) {
      const TensorView part = bucket.part(rank), reduced = bucket.reduced(rank);
      copy(part, reduced);
      bucket.unpack_reduced(layout.shard(other.tree(), rank), kernels);
    }
  }
  // All numbers are small integers, so they are exact in bf16.
  CHECK(other.weight == model.weight);
  CHECK(other.bias == model.bias);
  CHECK(other.scalar == model.scalar);
  for (std::size_t i = 0; i < 14; ++i) CHECK(other.strided[i] == (i % 2 == 0 ? model.strided[i] : -1.f));
}
