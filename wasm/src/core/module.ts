/**
 * The exports of a module; wasm/cpp/exports.hpp declares and explains them. Pointers and handles are numbers; operations that take time
 * complete through the host with their ticket.
 */
export interface RingletModule {
  /** The whole memory; a new view after each growth. */
  readonly HEAPU8: Uint8Array;

  _ringlet_error_text(): number;
  _ringlet_error_rank(): number;
  _ringlet_allocate(bytes: number): number;
  _ringlet_release(pointer: number): void;

  _ringlet_join(
    ticket: number,
    host: number,
    port: number,
    token: number,
    name: number,
    connectTimeout: number,
    operationTimeout: number,
    encrypt: number,
  ): number;
  _ringlet_world_of_one(): number;
  _ringlet_world_group(world: number): number;
  _ringlet_leave(ticket: number, world: number): number;
  _ringlet_bytes_sent(world: number): number;
  _ringlet_bytes_received(world: number): number;

  _ringlet_world_epoch(world: number): number;
  _ringlet_world_lineage(world: number): number;
  _ringlet_world_door(world: number, rank: number): number;
  _ringlet_revoke(world: number): number;
  _ringlet_world_failure(world: number): number;

  _ringlet_group_rank(group: number): number;
  _ringlet_group_size(group: number): number;
  _ringlet_group_along_ring(group: number, rank: number, offset: number): number;
  _ringlet_group_placement(group: number): number;
  _ringlet_vote(ticket: number, group: number, timeout: number, mine: number, trains: number): number;
  _ringlet_split(ticket: number, group: number, stream: number, timeout: number, color: number, key: number): number;
  _ringlet_group_leave(group: number): number;
  _ringlet_group_algorithm(group: number, operation: number, bytes: number): number;

  _ringlet_collective(
    ...call: [
      ...Call,
      form: number,
      op: number,
      dtype: number,
      input: number,
      inputRows: number,
      output: number,
      outputRows: number,
      rowElements: number,
      counts: number,
      receiveCounts: number,
      root: number,
    ]
  ): number;
  _ringlet_send(...call: [...Call, dtype: number, values: number, shape: number, axes: number, destination: number]): number;
  _ringlet_receive(...call: [...Call, dtype: number, values: number, shape: number, axes: number, source: number]): number;

  _ringlet_tree(): number;
  _ringlet_tree_add(tree: number, name: number, dtype: number, data: number, shape: number, axes: number): number;
  _ringlet_average_gradients(
    ticket: number,
    group: number,
    stream: number,
    tree: number,
    allReduceSize: number,
    wire: number,
    weight: number,
    totalWeight: number,
    feedback: number,
    leastElements: number,
  ): number;
  _ringlet_optimizer(formula: number, learningRate: number, numbers: number, count: number, stateDtype: number): number;
  _ringlet_optimizer_set_learning_rate(optimizer: number, learningRate: number): number;
  _ringlet_fsdp(
    group: number,
    replicas: number,
    communicationSize: number,
    maxNorm: number,
    reduceDtype: number,
    shardWeights: number,
    feedback: number,
    leastElements: number,
  ): number;
  _ringlet_fsdp_apply(ticket: number, fsdp: number, stream: number, gradients: number, parameters: number, optimizer: number): number;
  _ringlet_fsdp_norm(fsdp: number): number;
  _ringlet_sync(ticket: number, group: number, stream: number, tree: number, values: number, lacks: number, step: number): number;
  _ringlet_sync_takes(sync: number): number;
  _ringlet_sync_step(sync: number): number;
  _ringlet_sync_values(sync: number): number;
  _ringlet_object_release(object: number): number;
}

/** The arguments with which every operation begins. */
export type Call = [ticket: number, group: number, stream: number, timeout: number];
