// Gloo over TCP in bench/compare. Reads RANK, WORLD_SIZE, COMPARE_STORE (a folder of this run's own, where the ranks meet) and
// COMPARE_ADDRESS (the address this rank binds to).
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

#include "measure.hpp"

namespace {

const char* required(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr) return value;
  std::fprintf(stderr, "measure_gloo: %s is not set\n", name);
  std::exit(2);
}

}  // namespace

int main(int count, char** arguments) {
  const compare::Request request = compare::read_request(count, arguments);
  compare::Library library;
  library.name = "gloo";
  library.version = "Debian's libgloo";
  library.rank = std::atoi(required("RANK"));
  library.ranks = std::atoi(required("WORLD_SIZE"));
  gloo::transport::tcp::attr attributes;
  attributes.hostname = required("COMPARE_ADDRESS");
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(required("COMPARE_STORE"));
  auto context = std::make_shared<gloo::rendezvous::Context>(library.rank, library.ranks);
  context->connectFullMesh(store, device);

  library.barrier = [&] {
    gloo::BarrierOptions options(context);
    gloo::barrier(options);
  };
  library.largest = [&](double value) {
    gloo::AllreduceOptions options(context);
    options.setOutput(&value, 1);
    options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t n) { gloo::max<double>(out, a, b, n); });
    gloo::allreduce(options);
    return value;
  };
  library.all_reduce = [&](float* values, std::size_t elements) {
    gloo::AllreduceOptions options(context);
    options.setOutput(values, elements);
    options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t n) { gloo::sum<float>(out, a, b, n); });
    gloo::allreduce(options);
  };
  library.all_gather = [&](const float* input, float* output, std::size_t part) {
    gloo::AllgatherOptions options(context);
    options.setInput(const_cast<float*>(input), part);
    options.setOutput(output, part * static_cast<std::size_t>(library.ranks));
    gloo::allgather(options);
  };
  // Gloo has this as an object of fixed buffers that works in place.
  std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> scatter;
  std::vector<float> buffer;
  std::size_t parts_of = 0;
  library.reduce_scatter = [&](const float* input, float* output, std::size_t part) {
    if (parts_of != part) {
      buffer.assign(part * static_cast<std::size_t>(library.ranks), 0.0f);
      const std::vector<int> counts(static_cast<std::size_t>(library.ranks), static_cast<int>(part));
      scatter = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(context, std::vector<float*>{buffer.data()},
                                                                            static_cast<int>(buffer.size()), counts);
      parts_of = part;
    }
    std::copy(input, input + buffer.size(), buffer.begin());
    scatter->run();
    std::copy(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(part), output);
  };
  compare::Measurement(library, request).run();
  library.barrier();
}
