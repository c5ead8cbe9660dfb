/* A rank that calls everything of the C API, in C99. `ringlet launch` starts it with an empty directory as its argument. */

#include "cases.h"
#include "check.h"

ringlet_tensor floats(float* elements, const int64_t* count) {
  const ringlet_tensor tensor = {elements, RINGLET_F32, 1, count, NULL};
  return tensor;
}

int main(int argc, char** argv) {
  world w;
  CHECK(argc == 2);
  ringlet_init_options options;
  CHECK_OK(ringlet_init_options_init(&options, sizeof options));
  options.strict = 1;
  CHECK_OK(ringlet_init(&options, &w.group));
  CHECK_OK(ringlet_group_rank(w.group, &w.rank));
  CHECK_OK(ringlet_group_size(w.group, &w.size));
  test_collectives(&w);
  test_bits_and_complex(&w);
  test_parts(&w);
  test_uneven_parts(&w);
  test_messages(&w);
  test_groups(&w);
  test_works(&w);
  test_call_backs(&w);
  test_own_meeting(&w);
  test_arguments(&w);
  test_averages(&w);
  test_optimizers(&w);
  test_fsdp(&w);
  test_fully_shard(&w);
  test_checkpoints(&w, argv[1]);
  test_trainer(w.group);
  test_outer(&w);
  test_mismatch(&w);
  test_reform(&w);
  ringlet_group_free(w.group);
  printf("rank %d of %d is done\n", (int)w.rank, (int)w.size);
  return 0;
}
