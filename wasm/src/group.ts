import { type CallOptions, checkCall, checkSignal, type ValueOptions, waitFor } from './calls.js';
import { Caller } from './caller.js';
import type { DType, ReduceOp, TypedArray } from './dtypes.js';
import type { Collective, Engine, Membership, Seat, Traffic, Placement } from './engine.js';
import { InvalidArgument } from './errors.js';
import { type AverageOptions, averageSettings, type FsdpOptions, fsdpSettings } from './gradients.js';
import type { Optimizer } from './optimizer.js';
import { allGatherShape, checkedCounts, checkedRank, evenRows, partShape } from './parts.js';
import { asTensor, checkedShape, type Tensor, type Values } from './tensors.js';
import type { Tree } from './trees.js';

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;
type Nothing<T extends never> = T;
/** @internal Does not compile where `Group` lacks a collective that the core has. */
export type MissingCollectives = Nothing<Exclude<Camel<Collective>, keyof Group>>;

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
  readonly #caller: Caller;
  #left: Promise<void> | undefined;

  /** Of the package: `join` and `split` make groups. */
  constructor(engine: Engine, membership: Membership) {
    this.#engine = engine;
    this.#membership = membership;
    this.#caller = new Caller(engine, membership.group);
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
    return this.#caller.values('all_reduce', values, { op, input, shape: input.shape }, options);
  }

  /** The mean over all ranks: the sum is divided once, by the rank that owns the part. Floating dtypes only. */
  async allMean<T extends Values>(values: T, options: ValueOptions = {}): Promise<T> {
    const input = asTensor(values, options);
    return this.#caller.values('all_mean', values, { input, shape: input.shape }, options);
  }

  /**
   * Rank r gets the r-th part of axis 0 of what is reduced: `counts[r]` rows, or else even parts, the first ranks one row more where the
   * rows do not divide.
   */
  async reduceScatter<T extends Values>(op: ReduceOp, values: T, options: ValueOptions & Counts = {}): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    const rows = counts ?? evenRows(input.shape[0] ?? 0, this.size);
    const shape = partShape(input.shape, rows[this.rank] ?? 0);
    return this.#caller.values('reduce_scatter', values, { op, input, shape, counts }, options);
  }

  /** MLX's name for `reduceScatter('sum', ...)`. */
  sumScatter<T extends Values>(values: T, options: ValueOptions & Counts = {}): Promise<T> {
    return this.reduceScatter('sum', values, options);
  }

  /** Every rank's values, one behind the other along axis 0. Same shape on all ranks, or counts[r] rows of rank r. */
  async allGather<T extends Values>(values: T, options: ValueOptions & Counts = {}): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    return this.#caller.values('all_gather', values, { input, shape: allGatherShape(input.shape, this.size, counts), counts }, options);
  }

  /** The values of rank `root`, on every rank. Elsewhere `values` only say how many there are, and of which dtype. */
  async broadcast<T extends Values>(values: T, root: number, options: ValueOptions = {}): Promise<T> {
    const input = asTensor(values, options);
    return this.#caller.values('broadcast', values, { input, shape: input.shape, peer: root }, options);
  }

  /** What is reduced over all ranks, on rank `root`; undefined elsewhere. */
  async reduce<T extends Values>(op: ReduceOp, values: T, root: number, options: ValueOptions = {}): Promise<T | undefined> {
    const input = asTensor(values, options);
    const shape = this.rank === root ? input.shape : undefined;
    return this.#caller.valuesOrNone('reduce', values, { op, input, shape, peer: root }, options);
  }

  /** Every rank's values, one behind the other along axis 0, on rank `root`; undefined elsewhere. As `allGather` otherwise. */
  async gather<T extends Values>(values: T, root: number, options: ValueOptions & Counts = {}): Promise<T | undefined> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    const shape = this.rank === root ? allGatherShape(input.shape, this.size, counts) : undefined;
    return this.#caller.valuesOrNone('gather', values, { input, shape, peer: root, counts }, options);
  }

  /**
   * Rank r gets the r-th part along axis 0 of the values of rank `root`: counts[r] rows, or even parts, which the rows must divide into.
   * Elsewhere `values` are what the part looks like (or goes `into`), and are not read.
   */
  async scatter<T extends Values>(values: T, root: number, options: ValueOptions & Counts = {}): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    if (this.rank !== root) return this.#caller.values('scatter', values, { shape: input.shape, like: input, peer: root, counts }, options);
    const rows = counts?.[this.rank] ?? Math.floor((input.shape[0] ?? 0) / this.size);
    return this.#caller.values('scatter', values, { input, shape: partShape(input.shape, rows), peer: root, counts }, options);
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
    return this.#caller.values('all_to_all', values, { input, shape, counts, receiveCounts }, options);
  }

  /** Ends once every rank has called it. */
  async barrier(options: CallOptions = {}): Promise<void> {
    await this.#caller.run('barrier', {}, options);
  }

  /**
   * Matched with the receiver's calls in order per (source, stream). Ends once the receiver has matched it and its bytes have left. Another
   * dtype or shape there is a `MismatchError` on both sides; the group lives on.
   */
  async send(values: Values, destination: number, options: Omit<ValueOptions, 'into'> = {}): Promise<void> {
    await this.#caller.run('send', { input: this.#caller.operand(asTensor(values, options)), peer: checkedRank(destination) }, options);
  }

  /** Receives what `source` sends, which must have this dtype and shape: so many elements as an array, or a `Tensor` of a shape. */
  async recv(count: number, dtype: DType, source: number, options?: CallOptions): Promise<TypedArray>;
  async recv(shape: readonly number[], dtype: DType, source: number, options?: CallOptions): Promise<Tensor>;
  async recv(shape: number | readonly number[], dtype: DType, source: number, options: CallOptions = {}): Promise<Values> {
    const like = this.#caller.plainTensor(dtype, [0]);
    const values = typeof shape === 'number' ? like.data : like;
    const extents = checkedShape(typeof shape === 'number' ? [shape] : shape);
    const [output, finish] = this.#caller.result(values, dtype, extents, undefined);
    return finish(await this.#caller.run('recv', { output, peer: checkedRank(source) }, options));
  }

  /** Receives values of the dtype and shape of `like`, whose elements are not looked at. */
  async recvLike<T extends Values>(like: T, source: number, options: ValueOptions = {}): Promise<T> {
    const tensor = asTensor(like, options);
    return this.#caller.values('recv', like, { shape: tensor.shape, like: tensor, peer: source }, options);
  }

  /**
   * Each gradient of the tree becomes its mean over the group, in place; the tree comes back. A group of one changes nothing. Floating
   * dtypes, which may be mixed. At the first call names, order, dtypes and shapes are compared between the ranks: where they differ, every
   * rank gets a `MismatchError`, and the group lives on.
   */
  async averageGradients<T extends Tree>(gradients: T, options: AverageOptions = {}): Promise<T> {
    const request = { ...averageSettings(options), group: this.#membership.group, leaves: this.#caller.leaves(gradients) };
    checkSignal('average_gradients', options.signal);
    await waitFor('average_gradients', this.#engine.average(request), options.signal);
    return gradients;
  }

  /**
   * FSDP's step over full parameters: gradients are averaged into shards, the optimizer changes this rank's rows of every parameter, and the
   * updated rows are gathered into `parameters`, in place. Both trees have the same names, order and shapes. Gives the global norm of the
   * gradients before clipping where there is a `maxNorm`.
   */
  async fsdpApplyGradients(
    gradients: Tree,
    parameters: Tree,
    optimizer: Optimizer,
    options: FsdpOptions & { readonly dpGroup?: Group } = {},
  ): Promise<number | undefined> {
    const request = {
      ...fsdpSettings(options),
      group: this.#membership.group,
      dpGroup: options.dpGroup === undefined ? undefined : options.dpGroup.#membership.group,
      gradients: this.#caller.leaves(gradients),
      parameters: this.#caller.leaves(parameters),
      optimizer: optimizer.next(),
    };
    checkSignal('fsdp_apply_gradients', options.signal);
    const step = this.#engine.applyFsdp(request).then((norm) => {
      optimizer.advance();
      return norm;
    });
    return waitFor('fsdp_apply_gradients', step, options.signal);
  }

  /**
   * Forms a group of the ranks that give the same `color`, ordered by `key`, then by rank in this group; a negative key stands for that
   * rank. A negative colour: this side is in no group, and gets undefined. Every rank of this group calls it.
   */
  async split(color: number, key = -1, options: CallOptions = {}): Promise<Group | undefined> {
    for (const [name, value] of [
      ['color', color],
      ['key', key],
    ] as const) {
      if (!Number.isInteger(value) || Math.abs(value) > 0x7fffffff)
        throw new InvalidArgument(`${value} is no ${name}; give a whole number of 32 bits`);
    }
    const { stream, timeout } = checkCall(options);
    checkSignal('split', options.signal);
    const formed = this.#engine.split({ group: this.#membership.group, color, key, stream, timeout });
    const membership = await waitFor('split', formed, options.signal);
    return membership === undefined ? undefined : new Group(this.#engine, membership);
  }

  /**
   * How a collective ("all_reduce", ...) moves a buffer of so many bytes: "exchange", "doubling", "direct", "ring", ...; the same on every
   * rank.
   */
  async algorithm(operation: string, bytes: number): Promise<string> {
    const name = await this.#engine.algorithm(this.#membership.group, operation, bytes);
    if (name === undefined)
      throw new InvalidArgument(`'${operation}' is no operation that could be asked about; give for example all_reduce`);
    return name;
  }

  /** How the ranks stand in the ring, and how what has more than one way is moved, chosen by what the links cost. */
  placement(): Promise<Placement> {
    return this.#engine.placement(this.#membership.group);
  }

  /**
   * A tensor in the memory of the wasm module: calls read and write it where it is. In a group whose module runs in a Worker of its own
   * that memory cannot be reached, and the tensor is an ordinary one.
   */
  alloc(dtype: DType, shape: number | readonly number[]): Tensor {
    const extents = checkedShape(typeof shape === 'number' ? [shape] : shape);
    return this.#caller.tensor(dtype, extents);
  }

  /**
   * Leaves the group; of the world itself, also closes the links. Operations under way end as `Cancelled`; other ranks that still need this
   * one get `PeerLost`. Never rejects, and may be called again.
   */
  leave(): Promise<void> {
    this.#left ??= this.#engine.leave(this.#membership.group);
    return this.#left;
  }
}
