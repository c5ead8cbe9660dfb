import { type CallOptions, checkCall, checkSignal, type ValueOptions, waitFor } from './calls.js';
import { type DType, factsOf, numberOf, type ReduceOp, type TypedArray } from './dtypes.js';
import type { Engine, EngineMemory, Kind, NamedOperand, Operand, Operation, Result } from './engine.js';
import { InvalidArgument } from './errors.js';
import { checkedRank } from './parts.js';
import { countOf, shapeText, Tensor, type Values } from './tensors.js';
import { flatten, type Tree } from './trees.js';
import { WasmTensor } from './wasm_tensors.js';

/**
 * The parameters of a call besides its options. Without `shape` there is no result; `like` gives the result's dtype if there is no input.
 */
export interface ValueCall {
  readonly op?: ReduceOp;
  readonly input?: Tensor;
  readonly like?: Tensor;
  readonly shape?: readonly number[] | undefined;
  readonly peer?: number;
  readonly counts?: readonly number[] | undefined;
  readonly receiveCounts?: readonly number[] | undefined;
}

/** Where a result goes. */
interface Place {
  readonly output: Result;
  /** Makes the caller's value of the result. */
  finish(bytes: Uint8Array | undefined): Values;
  /** Frees the place of a result that nobody gets. */
  drop(): void;
}

const nothing = (): void => undefined;

/** Turns the arguments of a group's functions into operations, and their results into what the functions return. */
export class Caller {
  readonly #engine: Engine;
  readonly #group: number;

  constructor(engine: Engine, group: number) {
    this.#engine = engine;
    this.#group = group;
  }

  /** Makes a tensor of zeros, in the module's memory if this realm can reach it, else in the realm's own. */
  tensor(dtype: DType, shape: readonly number[]): Tensor {
    const memory = this.#engine.memory;
    return memory === undefined ? this.plainTensor(dtype, shape) : allocate(memory, dtype, shape);
  }

  /** Makes a tensor of zeros in this realm's memory. */
  plainTensor(dtype: DType, shape: readonly number[]): Tensor {
    const facts = factsOf(dtype);
    return new Tensor(new facts.Array(new ArrayBuffer(countOf(shape) * facts.bytes)), { dtype, shape });
  }

  /** Runs the operation, and returns the result in the form of `values`: array or tensor. */
  async values<T extends Values>(kind: Kind, values: T, call: ValueCall & { shape: readonly number[] }, options: ValueOptions): Promise<T> {
    return (await this.valuesOrNone(kind, values, call, options)) as T;
  }

  /** The same, but without a result if the call has no `shape`. */
  async valuesOrNone<T extends Values>(kind: Kind, values: T, call: ValueCall, options: ValueOptions): Promise<T | undefined> {
    const { input, like, shape, ...rest } = call;
    const dtype = (input ?? like)?.dtype;
    const parts: Partial<Operation> = {
      ...defined(rest),
      ...(rest.op === undefined ? {} : { op: checkedOp(rest.op) }),
      ...(input === undefined ? {} : { input: this.operand(input) }),
    };
    if (shape === undefined || dtype === undefined) {
      await this.run(kind, parts, options);
      return undefined;
    }
    return (await this.#runInto(kind, parts, this.#result(values, dtype, shape, options.into), options)) as T;
  }

  /** Runs an operation without a result. */
  async run(kind: Kind, parts: Partial<Operation>, options: CallOptions): Promise<void> {
    await waitFor(kind, this.#start(kind, parts, options), options.signal);
  }

  async #runInto(kind: Kind, parts: Partial<Operation>, { output, finish, drop }: Place, options: CallOptions): Promise<Values> {
    let running: Promise<Uint8Array | undefined> | undefined;
    try {
      running = this.#start(kind, { ...parts, output }, options);
      return finish(await waitFor(kind, running, options.signal));
    } catch (error) {
      // An operation whose wait was aborted goes on, and writes its result.
      void Promise.allSettled([running]).then(drop);
      throw error;
    }
  }

  /** Starts the operation, and returns the bytes of the result if the output has no place of its own. */
  #start(kind: Kind, parts: Partial<Operation>, options: CallOptions): Promise<Uint8Array | undefined> {
    const { stream, timeout } = checkCall(options);
    checkSignal(kind, options.signal);
    return this.#engine.run({ ...parts, kind, group: this.#group, stream, timeout });
  }

  /** Describes the elements of a tensor for an operation. */
  operand(tensor: Tensor): Operand {
    return { dtype: tensor.dtype, shape: tensor.shape, at: this.place(tensor) };
  }

  /** Describes the tensors of a tree for an operation. */
  leaves(tree: Tree): NamedOperand[] {
    return flatten(tree).map(({ name, tensor }) => ({ name, ...this.operand(tensor) }));
  }

  place(tensor: Tensor): Uint8Array | number {
    const memory = this.#engine.memory;
    if (tensor instanceof WasmTensor && memory !== undefined && tensor.isIn(memory)) return tensor.pointer;
    return bytesOf(tensor.data);
  }

  /** Makes a place for the result. */
  #result(like: Values, dtype: DType, shape: readonly number[], into: Values | undefined): Place {
    if (into !== undefined) {
      const target = into instanceof Tensor ? into : new Tensor(into, { dtype });
      if (target.dtype !== dtype || target.count !== countOf(shape)) {
        throw new InvalidArgument(
          `the result is ${dtype} ${shapeText(shape)}, but \`into\` is ${target.dtype} ${shapeText(target.shape)}: ` +
            'it must have as many elements, of the same dtype',
        );
      }
      return { output: { dtype, shape, at: this.place(target) }, finish: () => into, drop: nothing };
    }
    if (like instanceof WasmTensor && this.#engine.memory !== undefined) {
      const made = allocate(this.#engine.memory, dtype, shape);
      return { output: { dtype, shape, at: made.pointer }, finish: () => made, drop: () => made.free() };
    }
    const facts = factsOf(dtype);
    const finish = (bytes: Uint8Array | undefined): Values => {
      const array: TypedArray =
        bytes === undefined
          ? new facts.Array(new ArrayBuffer(0))
          : new facts.Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / facts.Array.BYTES_PER_ELEMENT);
      return like instanceof Tensor ? new Tensor(array, { dtype, shape }) : array;
    };
    return { output: { dtype, shape, at: undefined }, finish, drop: nothing };
  }
}

function allocate(memory: EngineMemory, dtype: DType, shape: readonly number[]): WasmTensor {
  return new WasmTensor(memory, memory.allocate(countOf(shape) * factsOf(dtype).bytes), dtype, shape, true);
}

function checkedOp(op: ReduceOp): ReduceOp {
  numberOf(op);
  return op;
}

function defined(call: Pick<ValueCall, 'peer' | 'counts' | 'receiveCounts'>): Partial<Operation> {
  const { peer, counts, receiveCounts } = call;
  return {
    ...(peer === undefined ? {} : { peer: checkedRank(peer) }),
    ...(counts === undefined ? {} : { counts }),
    ...(receiveCounts === undefined ? {} : { receiveCounts }),
  };
}

function bytesOf(array: TypedArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
