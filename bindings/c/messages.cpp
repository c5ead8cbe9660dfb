#include <ringlet/c/messages.h>

#include <type_traits>

#include "bindings/c/calls.hpp"

using namespace ringlet::c;

int32_t ringlet_send(ringlet_group* group, const ringlet_tensor* values, int32_t destination, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) { g.send(read_view(values, "values"), destination, call_options(options)); });
}
int32_t ringlet_send_async(ringlet_group* group, const ringlet_tensor* values, int32_t destination, const ringlet_call_options* options,
                           ringlet_work** work) {
  return start(__func__, group, work,
               [&](ringlet::Group& g) { return g.send_async(read_view(values, "values"), destination, call_options(options)); });
}

int32_t ringlet_recv(ringlet_group* group, const ringlet_tensor* values, int32_t source, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) { g.recv(written_view(values, "values"), source, call_options(options)); });
}
int32_t ringlet_recv_async(ringlet_group* group, const ringlet_tensor* values, int32_t source, const ringlet_call_options* options,
                           ringlet_work** work) {
  return start(__func__, group, work,
               [&](ringlet::Group& g) { return g.recv_async(written_view(values, "values"), source, call_options(options)); });
}

int32_t ringlet_recv_any(ringlet_group* group, const ringlet_tensor* values, int32_t* source, const ringlet_call_options* options) {
  return run(__func__, group, [&](ringlet::Group& g) {
    // An assignment would make the call before it looks at the pointer.
    int32_t& from = *required(source, "source");
    from = g.recv_any(written_view(values, "values"), call_options(options));
  });
}
int32_t ringlet_recv_any_async(ringlet_group* group, const ringlet_tensor* values, int32_t* source, const ringlet_call_options* options,
                               ringlet_work** work) {
  static_assert(std::is_same_v<int32_t, int>);
  return start(__func__, group, work, [&](ringlet::Group& g) {
    return g.recv_any_async(written_view(values, "values"), *required(source, "source"), call_options(options));
  });
}
