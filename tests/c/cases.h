#pragma once

#include <ringlet/ringlet.h>

/* The ranks of a group and this one among them. */
typedef struct {
  ringlet_group* group;
  int32_t rank;
  int32_t size;
} world;

/* One axis of `count` floats. `*count` is borrowed with the result. */
ringlet_tensor floats(float* elements, const int64_t* count);

void test_collectives(const world* w);
void test_parts(const world* w);
void test_uneven_parts(const world* w);
void test_messages(const world* w);
void test_groups(const world* w);
void test_works(const world* w);
void test_arguments(const world* w);
void test_averages(const world* w);
void test_optimizers(const world* w);
void test_fsdp(const world* w);
void test_fully_shard(const world* w);
/* Saves into `directory`, which is empty. */
void test_checkpoints(const world* w, const char* directory);
/* Ends the group. */
void test_mismatch(const world* w);
