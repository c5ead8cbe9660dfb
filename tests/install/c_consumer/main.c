#include <ringlet/ringlet.h>
#include <stdio.h>

int main(void) {
  ringlet_group* world = NULL;
  int32_t rank = 0;
  if (ringlet_init(NULL, &world) != RINGLET_OK) return 1;
  ringlet_group_rank(world, &rank);
  float x = (float)(rank + 1);
  const ringlet_tensor tensor = {&x, RINGLET_F32, 0, NULL, NULL};
  if (ringlet_all_reduce(world, RINGLET_SUM, &tensor, &tensor, NULL) != RINGLET_OK) return 1;
  if (rank == 0) printf("3 ranks: %g\n", (double)x);
  ringlet_group_free(world);
  return 0;
}
