import { type DType, factsOf } from '../dtypes.js';
import type { AverageRequest, FsdpRequest, NamedOperand, OptimizerStep, Synced, SyncRequest } from '../engine.js';
import { wireNumbers } from '../gradients.js';
import type { RingletModule } from './module.js';
import type { ModuleMemory } from './module_memory.js';
import { limitForModule } from './sizes.js';

/** A tree's tensors in the module's memory for the duration of an operation. */
class PlacedTree {
  readonly handle: number;
  readonly #module: RingletModule;
  readonly #memory: ModuleMemory;
  readonly #leaves: readonly NamedOperand[];
  readonly #places: number[] = [];
  #refused = 0;

  /** Copies the tensors that are not in the module's memory yet. Throws `RangeError` if memory is short. */
  constructor(module: RingletModule, memory: ModuleMemory, leaves: readonly NamedOperand[]) {
    this.#module = module;
    this.#memory = memory;
    this.#leaves = leaves;
    this.handle = module._ringlet_tree();
    try {
      for (const leaf of leaves) this.#add(leaf);
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** The code with which the module refused a leaf; 0 if it accepted all of them. */
  get refused(): number {
    return this.#refused;
  }

  /** Copies the tensors back to where they came from. */
  writeBack(): void {
    this.#leaves.forEach(({ at }, index) => {
      if (at instanceof Uint8Array) at.set(this.#memory.view(this.#places[index] ?? 0, at.byteLength));
    });
  }

  release(): void {
    this.#module._ringlet_object_release(this.handle);
    this.#leaves.forEach(({ at }, index) => {
      const place = this.#places[index];
      if (place !== undefined && typeof at !== 'number') this.#memory.release(place);
    });
  }

  #add({ name, dtype, shape, at }: NamedOperand): void {
    if (this.#refused !== 0) return;
    const place = typeof at === 'number' ? at : this.#memory.put(at);
    this.#places.push(place);
    this.#refused = this.#memory.lend([name, shape], (text = 0, extents = 0) =>
      this.#module._ringlet_tree_add(this.handle, text, factsOf(dtype).number, place, extents, shape.length),
    );
  }
}

/** An operation on trees before its start: `start` calls the module and returns its code, `finish` takes the result. */
export interface GradientCall<T> {
  start(ticket: number): number;
  /** Called once, after success or failure. */
  finish(succeeded: boolean): T;
}

/** Runs averages and FSDP steps, and keeps what the module needs for them from step to step. */
export class GradientCalls {
  readonly #module: RingletModule;
  readonly #memory: ModuleMemory;
  // The key holds everything that the sharding was made for, beginning with the group and, with feedback, the optimizer.
  readonly #shardings = new Map<string, number>();
  readonly #optimizers = new Map<number, number>();

  constructor(module: RingletModule, memory: ModuleMemory) {
    this.#module = module;
    this.#memory = memory;
  }

  average(request: AverageRequest): GradientCall<void> {
    const { group, stream, allReduceSize, weight, totalWeight } = request;
    const [wire, feedback, leastElements] = wireNumbers(request.communicationType);
    const tree = new PlacedTree(this.#module, this.#memory, request.leaves);
    return {
      start: (ticket) =>
        tree.refused ||
        this.#module._ringlet_average_gradients(
          ticket,
          group,
          stream,
          tree.handle,
          limitForModule(allReduceSize),
          wire,
          weight ?? NaN,
          totalWeight ?? NaN,
          feedback,
          limitForModule(leastElements),
        ),
      finish: (succeeded) => {
        if (succeeded) tree.writeBack();
        tree.release();
      },
    };
  }

  fsdp(request: FsdpRequest): GradientCall<number | undefined> {
    const [gradients, parameters] = this.#placeBoth(request);
    let sharding = 0;
    return {
      start: (ticket) => {
        if (gradients.refused || parameters.refused) return gradients.refused || parameters.refused;
        sharding = this.#sharding(request);
        if (sharding < 0) return -sharding;
        const optimizer = this.#optimizer(request.optimizer);
        if (optimizer < 0) return -optimizer;
        return this.#module._ringlet_fsdp_apply(ticket, sharding, request.stream, gradients.handle, parameters.handle, optimizer);
      },
      finish: (succeeded) => {
        if (succeeded) parameters.writeBack();
        gradients.release();
        parameters.release();
        const norm = succeeded ? this.#module._ringlet_fsdp_norm(sharding) : NaN;
        return Number.isNaN(norm) && request.maxNorm === undefined ? undefined : norm;
      },
    };
  }

  #placeBoth({ gradients, parameters }: FsdpRequest): [PlacedTree, PlacedTree] {
    const first = new PlacedTree(this.#module, this.#memory, gradients);
    try {
      return [first, new PlacedTree(this.#module, this.#memory, parameters)];
    } catch (error) {
      first.release();
      throw error;
    }
  }

  sync({ group, stream, state, values, lacks, step }: SyncRequest): GradientCall<Synced> {
    const tree = new PlacedTree(this.#module, this.#memory, state);
    let sync = 0;
    return {
      start: (ticket) => {
        if (tree.refused) return tree.refused;
        sync = this.#memory.lend([values], (text = 0) =>
          this.#module._ringlet_sync(ticket, group, stream, tree.handle, text, Number(lacks), step),
        );
        return -Math.min(sync, 0);
      },
      finish: (succeeded) => {
        const taken = succeeded && this.#module._ringlet_sync_takes(sync) !== 0;
        if (taken) tree.writeBack();
        tree.release();
        const synced = {
          taken,
          step: this.#module._ringlet_sync_step(sync),
          values: succeeded ? this.#memory.text(this.#module._ringlet_sync_values(sync)) : '',
        };
        if (sync > 0) this.#module._ringlet_object_release(sync);
        return synced;
      },
    };
  }

  /** Releases what was kept for a group. */
  forget(group: number): void {
    this.#releaseShardings(0, group);
  }

  /** Releases what was kept for an optimizer. */
  forgetOptimizer(id: number): void {
    this.#releaseShardings(1, id);
    const optimizer = this.#optimizers.get(id);
    if (optimizer === undefined) return;
    this.#optimizers.delete(id);
    this.#module._ringlet_object_release(optimizer);
  }

  /** Releases those that have this number at this place of their key. */
  #releaseShardings(place: number, number: number): void {
    for (const [key, sharding] of this.#shardings) {
      if (key.split(' ')[place] !== String(number)) continue;
      this.#shardings.delete(key);
      this.#module._ringlet_object_release(sharding);
    }
  }

  /** Returns the handle of the sharding, or a negated code. */
  #sharding({ group, dpGroup = 0, communicationSize, maxNorm = NaN, reduceDtype, shardWeights, optimizer }: FsdpRequest): number {
    const [wire, feedback, leastElements] = wireNumbers(reduceDtype);
    // What rounding has left out is of one model's gradients, which its optimizer tells from others.
    const model = feedback === 0 ? '' : optimizer.id;
    const key = [group, model, dpGroup, communicationSize, maxNorm, wire, leastElements, shardWeights?.join()].join(' ');
    const known = this.#shardings.get(key);
    if (known !== undefined) return known;
    const [size, least] = [communicationSize, leastElements].map(limitForModule) as [number, number];
    const weights = shardWeights === undefined ? [] : [Float64Array.from(shardWeights)];
    const made = this.#memory.lend(weights, (place = 0) =>
      this.#module._ringlet_fsdp(group, dpGroup, size, maxNorm, wire, place, feedback, least),
    );
    if (made > 0) this.#shardings.set(key, made);
    return made;
  }

  /** Returns the handle of the optimizer, set to the step's learning rate, or a negated code. */
  #optimizer({ id, formula, learningRate, numbers, stateDtype }: OptimizerStep): number {
    const known = this.#optimizers.get(id);
    if (known !== undefined) return -this.#module._ringlet_optimizer_set_learning_rate(known, learningRate) || known;
    const made = this.#memory.lend([formula, Float64Array.from(numbers)], (name = 0, values = 0) =>
      this.#module._ringlet_optimizer(name, learningRate, values, numbers.length, numberOf(stateDtype)),
    );
    if (made > 0) this.#optimizers.set(id, made);
    return made;
  }
}

function numberOf(dtype: DType | undefined): number {
  return dtype === undefined ? -1 : factsOf(dtype).number;
}
