// Made by bindings/generator from the library's tables: see ARCHITECTURE.md, "Tables".
#include <ringlet/c/collectives.h>

#include "bindings/c/calls.hpp"

using namespace ringlet::c;

int32_t ringlet_all_reduce(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                           const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.all_reduce(reduce_op(op), read_view(input, "input"), written_view(output, "output"), call_options(options));
  });
}
int32_t ringlet_all_reduce_async(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                 const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.all_reduce_async(reduce_op(op), read_view(input, "input"), written_view(output, "output"), call_options(options));
  });
}

int32_t ringlet_all_mean(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                         const ringlet_call_options* options) {
  return run(__func__, group,
             [&](ringlet::Group& g) { g.all_mean(read_view(input, "input"), written_view(output, "output"), call_options(options)); });
}
int32_t ringlet_all_mean_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                               const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.all_mean_async(read_view(input, "input"), written_view(output, "output"), call_options(options));
  });
}

int32_t ringlet_reduce_scatter(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                               const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.reduce_scatter(reduce_op(op), read_view(input, "input"), written_view(output, "output"), call_options(options));
  });
}
int32_t ringlet_reduce_scatter_async(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                     const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.reduce_scatter_async(reduce_op(op), read_view(input, "input"), written_view(output, "output"), call_options(options));
  });
}

int32_t ringlet_reduce_scatter_v(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                 const int64_t* counts, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.reduce_scatter_v(reduce_op(op), read_view(input, "input"), written_view(output, "output"), per_rank(group, counts, "counts"),
                       call_options(options));
  });
}
int32_t ringlet_reduce_scatter_v_async(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                       const int64_t* counts, const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.reduce_scatter_v_async(reduce_op(op), read_view(input, "input"), written_view(output, "output"),
                                    per_rank(group, counts, "counts"), call_options(options));
  });
}

int32_t ringlet_mean_scatter(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                             const ringlet_call_options* options) {
  return run(__func__, group,
             [&](ringlet::Group& g) { g.mean_scatter(read_view(input, "input"), written_view(output, "output"), call_options(options)); });
}
int32_t ringlet_mean_scatter_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                   const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.mean_scatter_async(read_view(input, "input"), written_view(output, "output"), call_options(options));
  });
}

int32_t ringlet_mean_scatter_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                               const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.mean_scatter_v(read_view(input, "input"), written_view(output, "output"), per_rank(group, counts, "counts"), call_options(options));
  });
}
int32_t ringlet_mean_scatter_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                                     const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.mean_scatter_v_async(read_view(input, "input"), written_view(output, "output"), per_rank(group, counts, "counts"),
                                  call_options(options));
  });
}

int32_t ringlet_all_gather(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                           const ringlet_call_options* options) {
  return run(__func__, group,
             [&](ringlet::Group& g) { g.all_gather(read_view(input, "input"), written_view(output, "output"), call_options(options)); });
}
int32_t ringlet_all_gather_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                 const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.all_gather_async(read_view(input, "input"), written_view(output, "output"), call_options(options));
  });
}

int32_t ringlet_all_gather_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                             const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.all_gather_v(read_view(input, "input"), written_view(output, "output"), per_rank(group, counts, "counts"), call_options(options));
  });
}
int32_t ringlet_all_gather_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                                   const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.all_gather_v_async(read_view(input, "input"), written_view(output, "output"), per_rank(group, counts, "counts"),
                                call_options(options));
  });
}

int32_t ringlet_broadcast(ringlet_group* group, const ringlet_tensor* values, int32_t root, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) { g.broadcast(written_view(values, "values"), root, call_options(options)); });
}
int32_t ringlet_broadcast_async(ringlet_group* group, const ringlet_tensor* values, int32_t root, const ringlet_call_options* options,
                                ringlet_work** work) {
  return start(__func__, group, work,
               [&](ringlet::Group& g) { return g.broadcast_async(written_view(values, "values"), root, call_options(options)); });
}

int32_t ringlet_barrier(ringlet_group* group, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) { g.barrier(call_options(options)); });
}
int32_t ringlet_barrier_async(ringlet_group* group, const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) { return g.barrier_async(call_options(options)); });
}

int32_t ringlet_reduce(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                       const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.reduce(reduce_op(op), read_view(input, "input"), output_at(root, group, output), root, call_options(options));
  });
}
int32_t ringlet_reduce_async(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                             const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.reduce_async(reduce_op(op), read_view(input, "input"), output_at(root, group, output), root, call_options(options));
  });
}

int32_t ringlet_reduce_mean(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                            const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.reduce_mean(read_view(input, "input"), output_at(root, group, output), root, call_options(options));
  });
}
int32_t ringlet_reduce_mean_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                                  const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.reduce_mean_async(read_view(input, "input"), output_at(root, group, output), root, call_options(options));
  });
}

int32_t ringlet_gather(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                       const ringlet_call_options* options) {
  return run(__func__, group,
             [&](ringlet::Group& g) { g.gather(read_view(input, "input"), output_at(root, group, output), root, call_options(options)); });
}
int32_t ringlet_gather_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                             const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.gather_async(read_view(input, "input"), output_at(root, group, output), root, call_options(options));
  });
}

int32_t ringlet_gather_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                         int32_t root, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.gather_v(read_view(input, "input"), output_at(root, group, output), per_rank(group, counts, "counts"), root, call_options(options));
  });
}
int32_t ringlet_gather_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                               int32_t root, const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.gather_v_async(read_view(input, "input"), output_at(root, group, output), per_rank(group, counts, "counts"), root,
                            call_options(options));
  });
}

int32_t ringlet_scatter(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                        const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.scatter(input_at(root, group, input), written_view(output, "output"), root, call_options(options));
  });
}
int32_t ringlet_scatter_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                              const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.scatter_async(input_at(root, group, input), written_view(output, "output"), root, call_options(options));
  });
}

int32_t ringlet_scatter_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                          int32_t root, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.scatter_v(input_at(root, group, input), written_view(output, "output"), per_rank(group, counts, "counts"), root,
                call_options(options));
  });
}
int32_t ringlet_scatter_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                                int32_t root, const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.scatter_v_async(input_at(root, group, input), written_view(output, "output"), per_rank(group, counts, "counts"), root,
                             call_options(options));
  });
}

int32_t ringlet_all_to_all(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                           const ringlet_call_options* options) {
  return run(__func__, group,
             [&](ringlet::Group& g) { g.all_to_all(read_view(input, "input"), written_view(output, "output"), call_options(options)); });
}
int32_t ringlet_all_to_all_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                 const ringlet_call_options* options, ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.all_to_all_async(read_view(input, "input"), written_view(output, "output"), call_options(options));
  });
}

int32_t ringlet_all_to_all_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* send_counts,
                             const int64_t* receive_counts, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    g.all_to_all_v(read_view(input, "input"), written_view(output, "output"), per_rank(group, send_counts, "send_counts"),
                   per_rank(group, receive_counts, "receive_counts"), call_options(options));
  });
}
int32_t ringlet_all_to_all_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                   const int64_t* send_counts, const int64_t* receive_counts, const ringlet_call_options* options,
                                   ringlet_work** work) {
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.all_to_all_v_async(read_view(input, "input"), written_view(output, "output"), per_rank(group, send_counts, "send_counts"),
                                per_rank(group, receive_counts, "receive_counts"), call_options(options));
  });
}
