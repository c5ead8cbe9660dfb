import { factsOf, numberOf } from '../dtypes.js';
import type { Operand, Operation, Result } from '../engine.js';
import { countOf } from '../tensors.js';
import type { Call, RingletModule, Rows } from './module.js';
import type { ModuleMemory } from './module_memory.js';

/** An operation's elements in the module's memory while it goes on. */
export class PlacedOperation {
  readonly #memory: ModuleMemory;
  readonly #operation: Operation;
  readonly #own: number[] = [];
  readonly #input: number;
  readonly #output: number;

  /** Copies what is not in the module's memory yet. `rank`: of this side in the group. Throws `RangeError` where memory is short. */
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

  /** Calls the module. Returns its code. */
  start(module: RingletModule, ticket: number): number {
    const { kind, group, stream, timeout, peer = 0, counts, receiveCounts } = this.#operation;
    const call: Call = [ticket, group, stream, Math.min(Math.ceil(timeout ?? 0), 0x7fffffff)];
    const main = this.#operation.input ?? this.#operation.output;
    const dtype = main === undefined ? 0 : factsOf(main.dtype).number;
    const op = numberOf(this.#operation.op ?? 'sum');
    const [input, output] = [this.#input, this.#output];
    const rows = rowsOf(main?.shape ?? []);
    switch (kind) {
      case 'all_reduce':
        return module._ringlet_all_reduce(...call, op, dtype, input, output, ...rows);
      case 'all_mean':
        return module._ringlet_all_mean(...call, dtype, input, output, ...rows);
      case 'reduce_scatter':
        return module._ringlet_reduce_scatter(...call, op, dtype, input, output, ...rows, this.#numbers(counts));
      case 'all_gather':
        return module._ringlet_all_gather(...call, dtype, input, output, ...rows, this.#numbers(counts));
      case 'broadcast':
        return module._ringlet_broadcast(...call, dtype, output, ...rows, peer);
      case 'reduce':
        return module._ringlet_reduce(...call, op, dtype, input, output, ...rows, peer);
      case 'gather':
        return module._ringlet_gather(...call, dtype, input, output, ...rows, this.#numbers(counts), peer);
      case 'scatter':
        return module._ringlet_scatter(
          ...call,
          dtype,
          input,
          output,
          ...rowsOf(this.#operation.output?.shape ?? []),
          this.#numbers(counts),
          peer,
        );
      case 'all_to_all':
        return counts === undefined
          ? module._ringlet_all_to_all(...call, dtype, input, output, ...rows)
          : module._ringlet_all_to_all_v(...call, dtype, input, output, rows[1], this.#numbers(counts), this.#numbers(receiveCounts));
      case 'barrier':
        return module._ringlet_barrier(...call);
      case 'send':
        return module._ringlet_send(...call, dtype, input, this.#numbers(main?.shape), main?.shape.length ?? 0, peer);
      case 'recv':
        return module._ringlet_receive(...call, dtype, output, this.#numbers(main?.shape), main?.shape.length ?? 0, peer);
    }
  }

  /** The result, once the operation has ended well: copied to where it goes, or new bytes where it has no place. */
  result(): Uint8Array | undefined {
    const output = this.#operation.output;
    if (output === undefined || typeof output.at === 'number') return undefined;
    const bytes = this.#memory.view(this.#output, bytesOf(output));
    if (output.at === undefined) return bytes.slice();
    output.at.set(bytes);
    return undefined;
  }

  /** Gives back what was taken for the operation. Once. */
  release(): void {
    for (const pointer of this.#own) this.#memory.release(pointer);
  }

  /** One place for input and output, since the operation works in place: the output's where it has one, else the input's. */
  #placeBoth(rank: number): [number, number] {
    const { kind, input, output, peer } = this.#operation;
    const isRead = kind !== 'broadcast' || rank === peer;
    if (input === undefined || output === undefined) return [this.#place(input), this.#room(output)];
    if (typeof output.at !== 'number') {
      // A borrowed input must keep its elements.
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

/** Whether the core takes one buffer for both, so that no second one is needed. */
function isInPlace({ kind }: Operation): boolean {
  return kind === 'all_reduce' || kind === 'all_mean' || kind === 'broadcast' || kind === 'reduce';
}

function twice(place: number): [number, number] {
  return [place, place];
}

function rowsOf(shape: readonly number[]): Rows {
  const [rows = 1, ...rest] = shape;
  return [rows, countOf(rest)];
}

function bytesOf({ dtype, shape }: { dtype: Operand['dtype']; shape: readonly number[] }): number {
  return countOf(shape) * factsOf(dtype).bytes;
}
