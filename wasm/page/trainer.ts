import type { ModuleMemory } from '../src/core/module_memory.js';
import { type DType, dtypes, sizeOf } from '../src/dtypes.js';
import type { BlockWire } from '../src/gradients.js';
import type { InnerStep, OuterTrainerOptions } from '../src/outer.js';
import { blockFormats, firstBlocks } from '../src/tables.js';
import { WasmTensor } from '../src/wasm_tensors.js';
import { numberNames, type TrainerModule, type TrainerNumbers } from './trainer_module.js';

/** A collective that the trainer asks for. A broadcast, which is from rank 0, uses only `output`. */
export interface Exchange {
  readonly input: WasmTensor;
  readonly output: WasmTensor;
  readonly stream: number;
}

/** An average of gradients that the trainer asks for. */
export interface Average {
  readonly gradients: Readonly<Record<string, WasmTensor>>;
  readonly communicationType: DType | BlockWire | undefined;
  readonly allReduceSize: number;
  readonly weight: number | undefined;
  readonly stream: number;
}

/** The parameters that an OuterTrainer trains, and its options. */
export interface Outer {
  readonly parameters: Readonly<Record<string, WasmTensor>>;
  readonly options: OuterTrainerOptions;
}

/** One rank's part of a run. It never waits, but says what comes next. Tensors are valid until the next compute() or done(). */
export class Trainer {
  readonly #module: TrainerModule;
  readonly #memory: ModuleMemory;
  readonly #trainer: number;

  constructor(module: TrainerModule, memory: ModuleMemory, rank: number, ranks: number) {
    this.#module = module;
    this.#memory = memory;
    this.#trainer = module._train_text_create(rank, ranks);
  }

  /** What comes next: one of the values in `next`. */
  get next(): number {
    return this.#module._train_text_next(this.#trainer);
  }

  get problem(): string {
    return this.#memory.text(this.#module._train_text_problem(this.#trainer));
  }

  /** The hash of the parameters from the last time that all ranks compared theirs. */
  get hash(): string {
    return this.#memory.text(this.#module._train_text_hash(this.#trainer));
  }

  get numbers(): TrainerNumbers {
    const values = new Float64Array(this.#memory.buffer, this.#module._train_text_numbers(this.#trainer), numberNames.length);
    return Object.fromEntries(numberNames.map((name, at) => [name, values[at] ?? 0])) as Record<(typeof numberNames)[number], number>;
  }

  /** Computes at most this many samples. Returns whether this part of the computing is complete. */
  compute(samples: number): boolean {
    return this.#module._train_text_compute(this.#trainer, samples) !== 0;
  }

  exchange(): Exchange {
    const at = this.#words(this.#module._train_text_exchange(this.#trainer), 6);
    const [input = 0, inputCount = 0, output = 0, outputCount = 0, number = 0, stream = 0] = at;
    const dtype = dtypes[number] ?? 'u8';
    return { input: this.#tensor(input, dtype, inputCount), output: this.#tensor(output, dtype, outputCount), stream };
  }

  average(): Average {
    const at = this.#module._train_text_average(this.#trainer);
    const [names = 0, values = 0, counts = 0, leaves = 0, communication = 0, stream = 0] = this.#words(at, 6);
    const [allReduceSize = 0, weight = 0] = new Float64Array(this.#memory.buffer, at + 24, 2);
    const gradients: Record<string, WasmTensor> = {};
    const [name, value, count] = [names, values, counts].map((column) => this.#words(column, leaves)) as [number[], number[], number[]];
    for (let leaf = 0; leaf < leaves; ++leaf) {
      gradients[this.#memory.text(name[leaf] ?? 0)] = this.#tensor(value[leaf] ?? 0, 'f32', count[leaf] ?? 0);
    }
    const communicationType = wireOf(communication);
    return { gradients, communicationType, allReduceSize, weight: weight < 0 ? undefined : weight, stream };
  }

  /** What `next.outer` is about. The parameters are valid as long as the trainer. */
  outer(): Outer {
    const at = this.#module._train_text_outer(this.#trainer);
    const [names = 0, values = 0, axes = 0, extents = 0, leaves = 0, ...numbers] = this.#words(at, 10);
    const [wire = 0, innerSteps = 0, fragments = 0, overlap = 0, bySpeed = 0] = numbers;
    const [allReduceSize = 0, learningRate = 0, momentum = 0] = new Float64Array(this.#memory.buffer, at + 40, 3);
    const parameters: Record<string, WasmTensor> = {};
    const [name, value, counts] = [names, values, axes].map((column) => this.#words(column, leaves)) as [number[], number[], number[]];
    const shapes = this.#words(
      extents,
      counts.reduce((sum, count) => sum + count, 0),
    );
    for (let leaf = 0; leaf < leaves; ++leaf) {
      const shape = shapes.splice(0, counts[leaf]);
      parameters[this.#memory.text(name[leaf] ?? 0)] = new WasmTensor(this.#memory, value[leaf] ?? 0, 'f32', shape, false);
    }
    const how = { innerSteps, fragments, overlap, bySpeed: bySpeed !== 0, learningRate, momentum, wire: wireOf(wire) };
    return { parameters, options: { ...how, elastic: { average: { allReduceSize } } } };
  }

  /** Begins an inner step, after which compute() takes it. */
  beginStep({ number, rank, ranks }: InnerStep): void {
    this.#module._train_text_begin_step(this.#trainer, number, rank, ranks);
  }

  /** Tells the trainer that the collective, or the training by an OuterTrainer, is done. */
  done(): void {
    this.#module._train_text_done(this.#trainer);
  }

  /** Lets the model write this many more bytes, and returns everything that it has written since writeAnew(). */
  write(bytes: number): string {
    const written = this.#module._train_text_write(this.#trainer, bytes);
    // The bytes are copied, because not every browser's decoder accepts memory that may grow.
    const text = new TextDecoder().decode(this.#memory.view(this.#module._train_text_written(this.#trainer), written).slice());
    // A model that has learnt little writes bytes that are not valid text.
    return text.replace(/[^\P{C}\n\t]|\uFFFD/gu, '·');
  }

  writeAnew(): void {
    this.#module._train_text_write_anew(this.#trainer);
  }

  destroy(): void {
    this.#module._train_text_destroy(this.#trainer);
  }

  #words(pointer: number, count: number): number[] {
    return [...new Uint32Array(this.#memory.buffer, pointer, count)];
  }

  #tensor(pointer: number, dtype: DType, count: number): WasmTensor {
    // An empty tensor may have an address that is not aligned for its elements, so it gets another one.
    return new WasmTensor(this.#memory, count === 0 ? sizeOf(dtype) : pointer, dtype, [count], false);
  }
}

function wireOf(number: number): DType | BlockWire | undefined {
  const blocks = blockFormats[number - firstBlocks];
  return blocks === undefined ? dtypes[number] : { blocks, feedback: true };
}
