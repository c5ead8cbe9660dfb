import { factsOf, numberOf } from '../dtypes.js';
import type { Collective, Operand, Operation, Result } from '../engine.js';
import { collectiveForms, inPlaceForms } from '../tables.js';
import { countOf } from '../tensors.js';
import type { Call, RingletModule } from './module.js';
import type { ModuleMemory } from './module_memory.js';
import { countForModule } from './sizes.js';
import { timeoutForModule } from './timeouts.js';

/** An operation's elements in the module's memory for the duration of the operation. */
export class PlacedOperation {
  readonly #memory: ModuleMemory;
  readonly #operation: Operation;
  readonly #own: number[] = [];
  readonly #input: number;
  readonly #output: number;

  /**
   * Copies the elements that are not in the module's memory yet. `rank` is this side's in the group. Throws `RangeError` if memory is
   * short.
   */
  constructor(memory: ModuleMemory, operation: Operation, rank: number) {
    this.#memory = memory;
    this.#operation = operation;
    try {
      [this.#input, this.#output] = isInPlace(operation)
        ? this.#placeBoth(rank)
        : [this.#place(operation.input), this.#room(operation.output)];
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** Calls the module, and returns its code. */
  start(module: RingletModule, ticket: number): number {
    const { kind, group, stream, timeout, peer = 0, counts, receiveCounts } = this.#operation;
    const call: Call = [ticket, group, stream, timeoutForModule(timeout)];
    const main = this.#operation.input ?? this.#operation.output;
    const shape = main?.shape ?? [];
    const dtype = main === undefined ? 0 : factsOf(main.dtype).number;
    const [input, output] = [this.#input, this.#output];
    if (kind === 'send') return module._ringlet_send(...call, dtype, input, this.#numbers(shape), shape.length, peer);
    if (kind === 'recv') return module._ringlet_receive(...call, dtype, output, this.#numbers(shape), shape.length, peer);
    return module._ringlet_collective(
      ...call,
      collectiveForms.indexOf(formOf(kind, counts !== undefined)),
      numberOf(this.#operation.op ?? 'sum'),
      dtype,
      input,
      rowsOf(this.#operation.input),
      output,
      rowsOf(this.#operation.output),
      countForModule(countOf(shape.slice(1))),
      this.#numbers(counts),
      this.#numbers(receiveCounts),
      peer,
    );
  }

  /** The result after success: copied to the output's place, or returned as new bytes if it has none. */
  result(): Uint8Array | undefined {
    const output = this.#operation.output;
    if (output === undefined || typeof output.at === 'number') return undefined;
    const bytes = this.#memory.view(this.#output, bytesOf(output));
    if (output.at === undefined) return bytes.slice();
    output.at.set(bytes);
    return undefined;
  }

  /** Frees the memory that was allocated for the operation. May be called once. */
  release(): void {
    for (const pointer of this.#own) this.#memory.release(pointer);
  }

  /** Returns one place for input and output, because the operation works in place: the output's if it has one, else the input's. */
  #placeBoth(rank: number): [number, number] {
    const { kind, input, output, peer } = this.#operation;
    const isRead = kind !== 'broadcast' || rank === peer;
    if (input === undefined || output === undefined) return [this.#place(input), this.#room(output)];
    if (typeof output.at !== 'number') {
      // An input in the module's memory is borrowed and must keep its elements, so the operation gets memory of its own.
      const place = typeof input.at === 'number' ? this.#keep(this.#memory.reserve(bytesOf(output))) : undefined;
      if (place === undefined) return twice(isRead ? this.#place(input) : this.#room({ ...output, at: undefined }));
      if (isRead) this.#memory.view(place, bytesOf(output)).set(this.#bytes(input));
      return twice(place);
    }
    if (isRead && output.at !== input.at) this.#memory.view(output.at, bytesOf(output)).set(this.#bytes(input));
    return twice(output.at);
  }

  #bytes(input: Operand): Uint8Array {
    return typeof input.at === 'number' ? this.#memory.view(input.at, bytesOf(input)) : input.at;
  }

  #place(input: Operand | undefined): number {
    if (input === undefined) return 0;
    return typeof input.at === 'number' ? input.at : this.#keep(this.#memory.put(input.at));
  }

  #room(output: Result | undefined): number {
    if (output === undefined) return 0;
    return typeof output.at === 'number' ? output.at : this.#keep(this.#memory.reserve(bytesOf(output)));
  }

  #numbers(numbers: readonly number[] | undefined): number {
    return numbers === undefined ? 0 : this.#keep(this.#memory.putNumbers(numbers));
  }

  #keep(pointer: number): number {
    this.#own.push(pointer);
    return pointer;
  }
}

/** Whether the core takes one buffer as input and output, so that no second one is needed. */
function isInPlace({ kind }: Operation): boolean {
  return (inPlaceForms as readonly string[]).includes(kind);
}

function formOf(kind: Collective, hasCounts: boolean): (typeof collectiveForms)[number] {
  return (hasCounts ? `${kind}_v` : kind) as (typeof collectiveForms)[number];
}

function twice(place: number): [number, number] {
  return [place, place];
}

/** Returns the extent of axis 0; a scalar has one row. */
function rowsOf(buffer: Operand | Result | undefined): number {
  return buffer === undefined ? 0 : countForModule(buffer.shape[0] ?? 1);
}

function bytesOf({ dtype, shape }: { dtype: Operand['dtype']; shape: readonly number[] }): number {
  return countOf(shape) * factsOf(dtype).bytes;
}
