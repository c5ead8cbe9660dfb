import { type CallOptions, checkCall, checkSignal, type ValueOptions, waitFor } from './calls.js';
import { type DType, factsOf, numberOf, type ReduceOp, type TypedArray } from './dtypes.js';
import type { Engine, Kind, Membership, Operand, Operation, Result, Seat, Traffic } from './engine.js';
import { InvalidArgument } from './errors.js';
import { allGatherShape, checkedCounts, evenRows, partShape } from './parts.js';
import { asTensor, checkedShape, countOf, shapeText, Tensor, type Values } from './tensors.js';
import { WasmTensor } from './wasm_tensors.js';

/** Rows, the extent of axis 0, of each rank's part. */
type Counts = { readonly counts?: readonly number[] | undefined };

/**
 * A set of ranks that call collectives together: the world that `join` joined, or a part of it that `split` made. Every rank must start the
 * operations of one stream in the same order, and an operation is started when it is called, not when its promise is awaited: what is given
 * is copied by then, unless it is in the module's memory (`alloc`).
 *
 * The first failure (a lost rank, a mismatch, a passed deadline) ends the world with all its groups: every operation under way, and every
 * later one, ends with that error. Ranks in calls are this group's; `error.rank` is always the rank in the world.
 */
export class Group {
  readonly #engine: Engine;
  readonly #membership: Membership;
  #left: Promise<void> | undefined;

  /** Of the package: `join` and `split` make groups. */
  constructor(engine: Engine, membership: Membership) {
    this.#engine = engine;
    this.#membership = membership;
  }

  /** This side's number in the group, from 0. */
  get rank(): number {
    return this.#membership.rank;
  }

  /** How many ranks the group has. */
  get size(): number {
    return this.#membership.size;
  }

  /** Rank and size in the world, and how many of its last ranks are guests: browsers or Node. */
  get world(): Seat {
    return this.#engine.seat;
  }

  /** Bytes that have gone over this side's links. */
  get traffic(): Traffic {
    return this.#engine.traffic;
  }

  /** The sum over all ranks; every rank gets the same bits. Same dtype and element count on all ranks. */
  allSum<T extends Values>(values: T, options: ValueOptions = {}): Promise<T> {
    return this.allReduce('sum', values, options);
  }

  allProd<T extends Values>(values: T, options: ValueOptions = {}): Promise<T> {
    return this.allReduce('prod', values, options);
  }

  allMax<T extends Values>(values: T, options: ValueOptions = {}): Promise<T> {
    return this.allReduce('max', values, options);
  }

  allMin<T extends Values>(values: T, options: ValueOptions = {}): Promise<T> {
    return this.allReduce('min', values, options);
  }

  async allReduce<T extends Values>(op: ReduceOp, values: T, options: ValueOptions = {}): Promise<T> {
    const input = asTensor(values, options);
    return this.#values('all_reduce', values, { op, input, shape: input.shape }, options);
  }

  /** The mean over all ranks: the sum is divided once, by the rank that owns the part. Floating dtypes only. */
  async allMean<T extends Values>(values: T, options: ValueOptions = {}): Promise<T> {
    const input = asTensor(values, options);
    return this.#values('all_mean', values, { input, shape: input.shape }, options);
  }

  /**
   * Rank r gets the r-th part of axis 0 of what is reduced: `counts[r]` rows, or else even parts, the first ranks one row more where the
   * rows do not divide. `op` is sum, max or min.
   */
  async reduceScatter<T extends Values>(op: ReduceOp, values: T, options: ValueOptions & Counts = {}): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    const rows = counts ?? evenRows(input.shape[0] ?? 0, this.size);
    const shape = partShape(input.shape, rows[this.rank] ?? 0);
    return this.#values('reduce_scatter', values, { op, input, shape, counts }, options);
  }

  /** MLX's name for `reduceScatter('sum', ...)`. */
  sumScatter<T extends Values>(values: T, options: ValueOptions & Counts = {}): Promise<T> {
    return this.reduceScatter('sum', values, options);
  }

  /** Every rank's values, one behind the other along axis 0. Same shape on all ranks, or counts[r] rows of rank r. */
  async allGather<T extends Values>(values: T, options: ValueOptions & Counts = {}): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    return this.#values('all_gather', values, { input, shape: allGatherShape(input.shape, this.size, counts), counts }, options);
  }

  /** The values of rank `root`, on every rank. Elsewhere `values` only say how many there are, and of which dtype. */
  async broadcast<T extends Values>(values: T, root: number, options: ValueOptions = {}): Promise<T> {
    const input = asTensor(values, options);
    return this.#values('broadcast', values, { input, shape: input.shape, peer: root }, options);
  }

  /** What is reduced over all ranks, on rank `root`; undefined elsewhere. */
  async reduce<T extends Values>(op: ReduceOp, values: T, root: number, options: ValueOptions = {}): Promise<T | undefined> {
    const input = asTensor(values, options);
    const shape = this.rank === root ? input.shape : undefined;
    return this.#valuesOrNone('reduce', values, { op, input, shape, peer: root }, options);
  }

  /** Every rank's values, one behind the other along axis 0, on rank `root`; undefined elsewhere. As `allGather` otherwise. */
  async gather<T extends Values>(values: T, root: number, options: ValueOptions & Counts = {}): Promise<T | undefined> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    const shape = this.rank === root ? allGatherShape(input.shape, this.size, counts) : undefined;
    return this.#valuesOrNone('gather', values, { input, shape, peer: root, counts }, options);
  }

  /**
   * Rank r gets the r-th part along axis 0 of the values of rank `root`: counts[r] rows, or even parts, which the rows must divide into.
   * Elsewhere `values` are what the part looks like (or goes `into`), and are not read.
   */
  async scatter<T extends Values>(values: T, root: number, options: ValueOptions & Counts = {}): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    if (this.rank !== root) return this.#values('scatter', values, { shape: input.shape, like: input, peer: root, counts }, options);
    const rows = counts?.[this.rank] ?? Math.floor((input.shape[0] ?? 0) / this.size);
    return this.#values('scatter', values, { input, shape: partShape(input.shape, rows), peer: root, counts }, options);
  }

  /**
   * The r-th part along axis 0 goes to rank r; the r-th part of the result comes from rank r. `sendCounts[r]` rows go to rank r and
   * `receiveCounts[r]` come from it, or else even parts, which the rows must divide into.
   */
  async allToAll<T extends Values>(
    values: T,
    options: ValueOptions & { readonly sendCounts?: readonly number[]; readonly receiveCounts?: readonly number[] } = {},
  ): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('sendCounts', options.sendCounts, this.size);
    const receiveCounts = checkedCounts('receiveCounts', options.receiveCounts, this.size);
    if ((counts === undefined) !== (receiveCounts === undefined)) {
      throw new InvalidArgument('an all_to_all of given sizes needs both, sendCounts and receiveCounts');
    }
    const rows = receiveCounts?.reduce((sum, count) => sum + count, 0);
    const shape = rows === undefined ? input.shape : partShape(input.shape, rows);
    return this.#values('all_to_all', values, { input, shape, counts, receiveCounts }, options);
  }

  /** Ends once every rank has called it. */
  async barrier(options: CallOptions = {}): Promise<void> {
    await this.#run('barrier', {}, options);
  }

  /**
   * Matched with the receiver's calls in order per (source, stream). Ends once the receiver has matched it and its bytes have left. Another
   * dtype or shape there is a `MismatchError` on both sides; the group lives on.
   */
  async send(values: Values, destination: number, options: Omit<ValueOptions, 'into'> = {}): Promise<void> {
    await this.#run('send', { input: this.#operand(asTensor(values, options)), peer: destination }, options);
  }

  /** Receives what `source` sends, which must have this dtype and shape. */
  async recv(shape: number | readonly number[], dtype: DType, source: number, options: CallOptions & { readonly into?: Values } = {}): Promise<Values> {
    const extents = checkedShape(typeof shape === 'number' ? [shape] : shape);
    const facts = factsOf(dtype);
    const like = options.into ?? new Tensor(new facts.Array(new ArrayBuffer(0)), { dtype, shape: [0] });
    const [result, finish] = this.#result(like, dtype, extents, options.into);
    return finish(await this.#run('recv', { output: result, peer: source }, options));
  }

  /** Receives values of the dtype and shape of `like`, whose elements are not looked at. */
  async recvLike<T extends Values>(like: T, source: number, options: ValueOptions = {}): Promise<T> {
    const tensor = asTensor(like, options);
    return this.#values('recv', like, { shape: tensor.shape, like: tensor, peer: source }, options);
  }

  /**
   * Forms a group of the ranks that give the same `color`, ordered by `key`, then by rank in this group; a negative key stands for that
   * rank. A negative colour: this side is in no group, and gets undefined. Every rank of this group calls it.
   */
  async split(color: number, key = -1, options: CallOptions = {}): Promise<Group | undefined> {
    for (const [name, value] of [['color', color], ['key', key]] as const) {
      if (!Number.isInteger(value) || Math.abs(value) > 0x7fffffff) throw new InvalidArgument(`${value} is no ${name}; give a whole number of 32 bits`);
    }
    const { stream, timeout } = checkCall(options);
    checkSignal('split', options.signal);
    const formed = this.#engine.split({ group: this.#membership.group, color, key, stream, timeout });
    const membership = await waitFor('split', formed, options.signal);
    return membership === undefined ? undefined : new Group(this.#engine, membership);
  }

  /**
   * A tensor in the memory of the wasm module: calls read and write it where it is. In a group whose module runs in a Worker of its own
   * that memory cannot be reached, and the tensor is an ordinary one.
   */
  alloc(dtype: DType, shape: number | readonly number[]): Tensor {
    const extents = checkedShape(typeof shape === 'number' ? [shape] : shape);
    const memory = this.#engine.memory;
    if (memory === undefined) return this.#plainTensor(dtype, extents);
    return new WasmTensor(memory, memory.allocate(countOf(extents) * factsOf(dtype).bytes), dtype, extents, true);
  }

  /**
   * Leaves the group; of the world itself, also closes the links. Operations under way end as `Cancelled`; other ranks that still need this
   * one get `PeerLost`. Never rejects, and may be called again.
   */
  leave(): Promise<void> {
    this.#left ??= this.#engine.leave(this.#membership.group);
    return this.#left;
  }

  #plainTensor(dtype: DType, shape: readonly number[]): Tensor {
    const facts = factsOf(dtype);
    return new Tensor(new facts.Array(new ArrayBuffer(countOf(shape) * facts.bytes)), { dtype, shape });
  }

  async #values<T extends Values>(kind: Kind, values: T, call: ValueCall & { shape: readonly number[] }, options: ValueOptions): Promise<T> {
    return (await this.#valuesOrNone(kind, values, call, options)) as T;
  }

  /** What `values` are, array or tensor, the result is, too. */
  async #valuesOrNone<T extends Values>(kind: Kind, values: T, call: ValueCall, options: ValueOptions): Promise<T | undefined> {
    const { input, like, shape, ...rest } = call;
    const dtype = (input ?? like)?.dtype;
    const parts: Partial<Operation> = {
      ...defined(rest),
      ...(rest.op === undefined ? {} : { op: checkedOp(rest.op) }),
      ...(input === undefined ? {} : { input: this.#operand(input) }),
    };
    if (shape === undefined || dtype === undefined) {
      await this.#run(kind, parts, options);
      return undefined;
    }
    const [output, finish] = this.#result(values, dtype, shape, options.into);
    return finish(await this.#run(kind, { ...parts, output }, options)) as T;
  }

  async #run(kind: Kind, parts: Partial<Operation>, options: CallOptions): Promise<Uint8Array | undefined> {
    const { stream, timeout } = checkCall(options);
    checkSignal(kind, options.signal);
    const operation: Operation = { ...parts, kind, group: this.#membership.group, stream, timeout };
    return waitFor(kind, this.#engine.run(operation), options.signal);
  }

  #operand(tensor: Tensor): Operand {
    return { dtype: tensor.dtype, shape: tensor.shape, at: this.#place(tensor) };
  }

  #place(tensor: Tensor): Uint8Array | number {
    const memory = this.#engine.memory;
    if (tensor instanceof WasmTensor && memory !== undefined && tensor.isIn(memory)) return tensor.pointer;
    return bytesOf(tensor.data);
  }

  /** Where the result goes, and what makes of it, once it is there, what the caller gets. */
  #result(like: Values, dtype: DType, shape: readonly number[], into: Values | undefined): [Result, (bytes: Uint8Array | undefined) => Values] {
    if (into !== undefined) {
      const target = into instanceof Tensor ? into : new Tensor(into, { dtype });
      if (target.dtype !== dtype || target.count !== countOf(shape)) {
        throw new InvalidArgument(
          `the result is ${dtype} ${shapeText(shape)}, but \`into\` is ${target.dtype} ${shapeText(target.shape)}: it must have as many elements, of the same dtype`,
        );
      }
      return [{ dtype, shape, at: this.#place(target) }, () => into];
    }
    if (like instanceof WasmTensor && this.#engine.memory !== undefined) {
      const made = this.alloc(dtype, shape) as WasmTensor;
      return [{ dtype, shape, at: made.pointer }, () => made];
    }
    const facts = factsOf(dtype);
    const finish = (bytes: Uint8Array | undefined): Values => {
      const array: TypedArray = bytes === undefined ? new facts.Array(new ArrayBuffer(0)) : new facts.Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / facts.Array.BYTES_PER_ELEMENT);
      return like instanceof Tensor ? new Tensor(array, { dtype, shape }) : array;
    };
    return [{ dtype, shape, at: undefined }, finish];
  }
}

interface ValueCall {
  readonly op?: ReduceOp;
  readonly input?: Tensor;
  readonly like?: Tensor;
  readonly shape?: readonly number[] | undefined;
  readonly peer?: number;
  readonly counts?: readonly number[] | undefined;
  readonly receiveCounts?: readonly number[] | undefined;
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

function checkedRank(rank: number): number {
  if (!Number.isInteger(rank) || Math.abs(rank) > 0x7fffffff) throw new InvalidArgument(`${rank} is no rank; give a whole number`);
  return rank;
}

function bytesOf(array: TypedArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
