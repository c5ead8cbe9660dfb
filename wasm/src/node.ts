import makeModule from 'ringlet-module';
import { nodePlatform } from './node_platform.js';
import { ElasticLoop, type ElasticTrainerOptions } from './elastic.js';
import type { Group } from './group.js';
import { type AloneOptions, aloneOn, type JoinOptions, joinOn } from './join.js';
import { OuterLoop, type OuterTrainerOptions } from './outer.js';
import type { Tree } from './trees.js';

export * from './api.js';

/**
 * Joins the group whose rank 0 listens at `options.url`, and waits until all ranks are there. Throws `InvalidArgument`,
 * `AuthenticationError`, `Timeout`, `PeerLost` or `ProtocolError` on failure.
 */
export function join(options: JoinOptions): Promise<Group> {
  return joinOn(nodePlatform, makeModule, options);
}

/** Makes a group of one, for programs that can also run alone. */
export function alone(options: AloneOptions = {}): Promise<Group> {
  return aloneOn(nodePlatform, makeModule, options);
}

/**
 * A training loop of a group whose ranks come and go: native ranks with an ElasticTrainer of theirs, and browsers or Node with this one. A
 * step is committed on all ranks or on none; one that is not is done again by those who are left, with the same batch, divided anew. When
 * any rank is lost, this side joins the others again by itself, gets the state that they have, and goes on.
 */
export class ElasticTrainer extends ElasticLoop {
  /**
   * `state` has all that a step changes, with the names, dtypes and shapes of the native ranks' Checkpoint: { model: parameters } stands for
   * `add("model", parameters)`. Throws `InvalidArgument` for a tree or options that are not valid.
   */
  constructor(where: JoinOptions, state: Tree, options: ElasticTrainerOptions = {}) {
    super(join, where, state, options);
  }
}

/**
 * Training with few averages, for slow networks: DiLoCo and, with fragments and overlap, Streaming DiLoCo. Native ranks with an OuterTrainer
 * of theirs, and browsers or Node with this one, each take `innerSteps` steps alone. Then the differences between the shared parameters and
 * each rank's are averaged, weighted by samples, and an outer SGD applies the average to the shared parameters as if it were a gradient. When
 * any rank is lost, this side joins the others again by itself, as an ElasticTrainer does.
 */
export class OuterTrainer extends OuterLoop {
  /**
   * `parameters`, of f32 or f64, with the names and shapes of the native ranks', are changed by the trainer, too. Throws `InvalidArgument` for
   * a tree or options that are not valid.
   */
  constructor(where: JoinOptions, parameters: Tree, options: OuterTrainerOptions = {}) {
    super(join, where, parameters, options);
  }
}
