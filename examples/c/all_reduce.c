/* Each rank contributes its number, and all ranks get the sum. Run it with: ringlet launch -n 4 -- all_reduce_c */
#include <ringlet/ringlet.h>
#include <stdio.h>

int main(void) {
  ringlet_group* group = NULL;
  int32_t rank = 0, size = 0;
  int32_t code = ringlet_init(NULL, &group);
  if (code == RINGLET_OK) code = ringlet_group_rank(group, &rank);
  if (code == RINGLET_OK) code = ringlet_group_size(group, &size);

  float values[3] = {(float)rank, 1, 0.5f};
  const int64_t shape[1] = {3};
  const ringlet_tensor tensor = {values, RINGLET_F32, 1, shape, NULL};
  if (code == RINGLET_OK) code = ringlet_all_reduce(group, RINGLET_SUM, &tensor, &tensor, NULL);

  if (code == RINGLET_OK)
    printf("rank %d of %d: the sums of all ranks are %g, %g, %g\n", (int)rank, (int)size, values[0], values[1], values[2]);
  else
    fprintf(stderr, "all_reduce: %s\n", ringlet_error_message());
  ringlet_group_free(group);
  return code == RINGLET_OK ? 0 : 1;
}
