#pragma once

#include <ringlet/ringlet.h>

/* A group with its size and this process's rank in it. */
typedef struct {
  ringlet_group* group;
  int32_t rank;
  int32_t size;
} world;

/* Returns a tensor with one axis of `count` floats. `*count` must live as long as the result. */
ringlet_tensor floats(float* elements, const int64_t* count);

void test_collectives(const world* w);
void test_bits_and_complex(const world* w);
void test_parts(const world* w);
void test_uneven_parts(const world* w);
void test_messages(const world* w);
void test_groups(const world* w);
void test_works(const world* w);
void test_call_backs(const world* w);
void test_own_meeting(const world* w);
void test_arguments(const world* w);
void test_averages(const world* w);
void test_optimizers(const world* w);
void test_fsdp(const world* w);
void test_fully_shard(const world* w);
void test_trainer(ringlet_group* group);
void test_outer(const world* w);
/* Saves checkpoints into `directory`, which must be empty. */
void test_checkpoints(const world* w, const char* directory);
/* This case ends the group, so it comes last. */
void test_mismatch(const world* w);
void test_reform(const world* w);
/* `group` is elastic; it is left. */
void test_elastic_trainer(ringlet_group* group, int32_t rank, int32_t size);
