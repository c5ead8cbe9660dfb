import { type CallOptions, checkCall, checkSignal, type ValueOptions, waitFor } from './calls.js';
import { Caller } from './caller.js';
import type { DType, ReduceOp, TypedArray } from './dtypes.js';
import type { Collective, Engine, Membership, Seat, Traffic, Placement } from './engine.js';
import { InvalidArgument } from './errors.js';
import { type AverageOptions, averageSettings, type FsdpOptions, fsdpSettings } from './gradients.js';
import type { Optimizer } from './optimizer.js';
import { allGatherShape, checkedCounts, checkedRank, evenRows, partShape } from './parts.js';
import { type Reformed, type ReformOptions, Succession } from './reform.js';
import { asTensor, checkedShape, type Tensor, type Values } from './tensors.js';
import type { Tree } from './trees.js';

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;
type Nothing<T extends never> = T;
/** @internal Fails to compile if `Group` lacks a collective that the core has. */
export type MissingCollectives = Nothing<Exclude<Camel<Collective>, keyof Group>>;

/** The rows (the extent of axis 0) of each rank's part. */
type Counts = { readonly counts?: readonly number[] | undefined };

/**
 * A set of ranks that call collectives together: the world that `join` joined, or a part of it that `split` made. Every rank must start the
 * operations of one stream in the same order. An operation starts when it is called, not when its promise is awaited: its data has been
 * copied by then, unless it is in the module's memory (`alloc`).
 *
 * The first failure (a lost rank, a mismatch, a passed deadline) ends the world with all its groups: every operation under way, and every
 * later one, ends with that error. Ranks in calls are this group's; `error.rank` is always the rank in the world.
 */
export class Group {
  readonly #engine: Engine;
  readonly #membership: Membership;
  readonly #caller: Caller;
  readonly #succession: Succession;
  readonly #isPart: boolean;
  #left: Promise<void> | undefined;

  /** Only for the package itself; programs get groups from `join` and `split`. */
  constructor(engine: Engine, membership: Membership, succession = new Succession(engine), isPart = false) {
    this.#engine = engine;
    this.#membership = membership;
    this.#caller = new Caller(engine, membership.group);
    this.#succession = succession;
    this.#isPart = isPart;
  }

  /** This side's number in the group, counted from 0. */
  get rank(): number {
    return this.#membership.rank;
  }

  /** How many ranks the group has. */
  get size(): number {
    return this.#membership.size;
  }

  /** @internal For ElasticTrainer. */
  get inner(): { readonly engine: Engine; readonly number: number; readonly caller: Caller } {
    return { engine: this.#engine, number: this.#membership.group, caller: this.#caller };
  }

  /** Rank and size in the world, and how many of its last ranks are guests: browsers or Node. */
  get world(): Seat {
    return this.#engine.seat;
  }

  /** How often an elastic group's world was formed anew before this one: 0 at first, and the same number on all ranks. */
  get epoch(): number {
    return this.#engine.seat.epoch;
  }

  /** Bytes that have passed over this side's links. */
  get traffic(): Traffic {
    return this.#engine.traffic;
  }

  /** Computes the sum over all ranks; every rank gets the same bits. Dtype and element count must be the same on all ranks. */
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

  /** Computes the mean over all ranks: the rank that owns a part divides its sum once. Floating dtypes only. */
  async allMean<T extends Values>(values: T, options: ValueOptions = {}): Promise<T> {
    const input = asTensor(values, options);
    return this.#caller.values('all_mean', values, { input, shape: input.shape }, options);
  }

  /**
   * Gives rank r the r-th part of axis 0 of the reduced values: `counts[r]` rows, or by default even parts. If the rows do not divide
   * evenly, the first ranks get one row more.
   */
  async reduceScatter<T extends Values>(op: ReduceOp, values: T, options: ValueOptions & Counts = {}): Promise<T> {
    return this.#scattered('reduce_scatter', values, op, options);
  }

  /** As `reduceScatter`: the mean, which the rank that gets a part divides once. Floating dtypes only. */
  async meanScatter<T extends Values>(values: T, options: ValueOptions & Counts = {}): Promise<T> {
    return this.#scattered('mean_scatter', values, undefined, options);
  }

  /** MLX's name for `reduceScatter('sum', ...)`. */
  sumScatter<T extends Values>(values: T, options: ValueOptions & Counts = {}): Promise<T> {
    return this.reduceScatter('sum', values, options);
  }

  /** Concatenates every rank's values along axis 0. The shape is the same on all ranks, or rank r has counts[r] rows. */
  async allGather<T extends Values>(values: T, options: ValueOptions & Counts = {}): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    return this.#caller.values('all_gather', values, { input, shape: allGatherShape(input.shape, this.size, counts), counts }, options);
  }

  /** Copies the values of rank `root` to every rank. On other ranks `values` only give the number of elements and the dtype. */
  async broadcast<T extends Values>(values: T, root: number, options: ValueOptions = {}): Promise<T> {
    const input = asTensor(values, options);
    return this.#caller.values('broadcast', values, { input, shape: input.shape, peer: root }, options);
  }

  /** As `reduce`: the mean over all ranks. Floating dtypes only. */
  async reduceMean<T extends Values>(values: T, root: number, options: ValueOptions = {}): Promise<T | undefined> {
    const input = asTensor(values, options);
    const shape = this.rank === root ? input.shape : undefined;
    return this.#caller.valuesOrNone('reduce_mean', values, { input, shape, peer: root }, options);
  }

  /** Reduces over all ranks; rank `root` gets the result, the others undefined. */
  async reduce<T extends Values>(op: ReduceOp, values: T, root: number, options: ValueOptions = {}): Promise<T | undefined> {
    const input = asTensor(values, options);
    const shape = this.rank === root ? input.shape : undefined;
    return this.#caller.valuesOrNone('reduce', values, { op, input, shape, peer: root }, options);
  }

  /** Concatenates every rank's values along axis 0 on rank `root`; the others get undefined. Otherwise like `allGather`. */
  async gather<T extends Values>(values: T, root: number, options: ValueOptions & Counts = {}): Promise<T | undefined> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    const shape = this.rank === root ? allGatherShape(input.shape, this.size, counts) : undefined;
    return this.#caller.valuesOrNone('gather', values, { input, shape, peer: root, counts }, options);
  }

  /**
   * Gives rank r the r-th part along axis 0 of the values of rank `root`: counts[r] rows, or even parts, for which the rows must divide
   * evenly. On other ranks `values` only give the part's form (or `into` receives it), and are not read.
   */
  async scatter<T extends Values>(values: T, root: number, options: ValueOptions & Counts = {}): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    if (this.rank !== root) return this.#caller.values('scatter', values, { shape: input.shape, like: input, peer: root, counts }, options);
    const rows = counts?.[this.rank] ?? Math.floor((input.shape[0] ?? 0) / this.size);
    return this.#caller.values('scatter', values, { input, shape: partShape(input.shape, rows), peer: root, counts }, options);
  }

  /**
   * Sends the r-th part along axis 0 to rank r; the r-th part of the result comes from rank r. `sendCounts[r]` rows go to rank r and
   * `receiveCounts[r]` come from it; by default the parts are even, and the rows must divide evenly.
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
   * Sends a message. Messages match the receiver's calls in order per (source, stream). It ends once the receiver has matched the message
   * and its bytes have left. If the receiver has another dtype or shape, both sides get a `MismatchError`, and the group stays usable.
   */
  async send(values: Values, destination: number, options: Omit<ValueOptions, 'into'> = {}): Promise<void> {
    await this.#caller.run('send', { input: this.#caller.operand(asTensor(values, options)), peer: checkedRank(destination) }, options);
  }

  /** Receives a message from `source`, which must have this dtype and shape: a count gives an array, a shape a `Tensor`. */
  async recv(count: number, dtype: DType, source: number, options?: CallOptions): Promise<TypedArray>;
  async recv(shape: readonly number[], dtype: DType, source: number, options?: CallOptions): Promise<Tensor>;
  async recv(shape: number | readonly number[], dtype: DType, source: number, options: CallOptions = {}): Promise<Values> {
    const like = this.#caller.plainTensor(dtype, [0]);
    const values = typeof shape === 'number' ? like.data : like;
    const extents = checkedShape(typeof shape === 'number' ? [shape] : shape);
    return this.#caller.values('recv', values, { shape: extents, like, peer: source }, options);
  }

  /** Receives values with the dtype and shape of `like`, whose elements are not read. */
  async recvLike<T extends Values>(like: T, source: number, options: ValueOptions = {}): Promise<T> {
    const tensor = asTensor(like, options);
    return this.#caller.values('recv', like, { shape: tensor.shape, like: tensor, peer: source }, options);
  }

  /**
   * Replaces each gradient of the tree by its mean over the group, in place, and returns the tree. A group of one changes nothing. The
   * dtypes must be floating and may be mixed. The first call compares names, order, dtypes and shapes between the ranks: if they differ,
   * every rank gets a `MismatchError`, and the group stays usable.
   */
  async averageGradients<T extends Tree>(gradients: T, options: AverageOptions = {}): Promise<T> {
    const request = { ...averageSettings(options), group: this.#membership.group, leaves: this.#caller.leaves(gradients) };
    checkSignal('average_gradients', options.signal);
    await waitFor('average_gradients', this.#engine.average(request), options.signal);
    return gradients;
  }

  /**
   * Takes an FSDP step over full parameters: gradients are averaged into shards, the optimizer changes this rank's rows of every parameter,
   * and the updated rows are gathered into `parameters`, in place. Both trees have the same names, order and shapes. Resolves to the global
   * norm of the gradients before clipping if there is a `maxNorm`.
   */
  async fsdpApplyGradients(
    gradients: Tree,
    parameters: Tree,
    optimizer: Optimizer,
    options: FsdpOptions & { readonly dpGroup?: Group } = {},
  ): Promise<number | undefined> {
    const request = {
      ...fsdpSettings(options, this.size),
      group: this.#membership.group,
      dpGroup: options.dpGroup === undefined ? undefined : options.dpGroup.#membership.group,
      gradients: this.#caller.leaves(gradients),
      parameters: this.#caller.leaves(parameters),
      optimizer: optimizer.next(),
    };
    checkSignal('fsdp_apply_gradients', options.signal);
    optimizer.watch(this.#engine);
    const step = this.#engine.applyFsdp(request).then((norm) => {
      optimizer.advance();
      return norm;
    });
    return waitFor('fsdp_apply_gradients', step, options.signal);
  }

  /**
   * Votes in an elastic group: resolves to whether all ranks say yes. Who commits a step only after a vote has committed the same steps as
   * all others who go on. If a rank is lost meanwhile, it rejects with `PeerLost`, or resolves to false: `reform` then, and get the
   * state from the others, who may have committed the step.
   */
  async agree(mine: boolean, options: Omit<CallOptions, 'stream'> = {}): Promise<boolean> {
    const { timeout } = checkCall(options);
    checkSignal('agree', options.signal);
    return waitFor('agree', this.#engine.vote({ group: this.#membership.group, mine, trains: false, timeout }), options.signal);
  }

  /**
   * Joins the others again when this elastic world has ended, once a call has rejected with `PeerLost` or another error that ends it, or
   * after `revoke`. The native ranks go on without browsers and Node, and admit this side to their next world, in which it has another rank
   * and none of their state. Groups that `split` made are to be made anew. It knocks where this side has joined, and at the doors of the
   * native ranks, again and again with pauses from 50 ms to 2 s. Rejects with `InvalidArgument` if the world is not elastic, has not failed
   * or was left, with `PeerLost` if nobody answers any more within the `connectTimeout`, with `Timeout` if nobody has admitted this side in
   * time, and as `join` does.
   */
  reform(options: ReformOptions = {}): Promise<Reformed> {
    return this.#succession.reform(options);
  }

  /**
   * Ends the epoch on all ranks: all calls of this elastic world reject with `Cancelled`, and `reform` follows, on this side too. Does nothing
   * where the world has ended. Rejects with `InvalidArgument` if the world is not elastic, or was left.
   */
  async revoke(): Promise<void> {
    if (!this.world.elastic) throw new InvalidArgument('the group is not elastic; leave() ends it');
    await this.#engine.revoke();
  }

  /**
   * Forms a group of the ranks that give the same `color`, ordered by `key`, then by rank in this group; a negative key stands for that
   * rank. With a negative color this side is in no group, and gets undefined. Every rank of this group must call it.
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
    return membership === undefined ? undefined : new Group(this.#engine, membership, this.#succession, true);
  }

  /**
   * Resolves to how a collective ("all_reduce", ...) moves a buffer of this many bytes: "exchange", "doubling", "direct", "ring",
   * "hub" or, among native ranks alone, "machines"; the same on every rank.
   */
  async algorithm(operation: string, bytes: number): Promise<string> {
    if (!Number.isInteger(bytes) || bytes < 0 || bytes > 0xffffffff)
      throw new InvalidArgument(`${bytes} is no number of bytes; give a whole number from 0 to ${0xffffffff}`);
    const name = await this.#engine.algorithm(this.#membership.group, operation, bytes);
    if (name === undefined)
      throw new InvalidArgument(`'${operation}' is no operation that could be asked about; give for example all_reduce`);
    return name;
  }

  /** Resolves to the ranks' order in the ring, and to the algorithms that were chosen by the costs of the links. */
  placement(): Promise<Placement> {
    return this.#engine.placement(this.#membership.group);
  }

  /**
   * Makes a tensor in the memory of the wasm module: calls read and write it there without copying. If the module runs in a Worker of its
   * own, that memory cannot be reached, and the tensor is an ordinary one.
   */
  alloc(dtype: DType, shape: number | readonly number[]): Tensor {
    const extents = checkedShape(typeof shape === 'number' ? [shape] : shape);
    return this.#caller.tensor(dtype, extents);
  }

  async #scattered<T extends Values>(
    kind: 'reduce_scatter' | 'mean_scatter',
    values: T,
    op: ReduceOp | undefined,
    options: ValueOptions & Counts,
  ): Promise<T> {
    const input = asTensor(values, options);
    const counts = checkedCounts('counts', options.counts, this.size);
    const rows = counts ?? evenRows(input.shape[0] ?? 0, this.size);
    const shape = partShape(input.shape, rows[this.rank] ?? 0);
    return this.#caller.values(kind, values, { ...(op === undefined ? {} : { op }), input, shape, counts }, options);
  }

  /**
   * Leaves the group. Of the world that closes the links: operations under way end as `Cancelled`, and other ranks that still need this
   * one get `PeerLost`. Of a part it waits until no operation is under way there. Never rejects, and may be called again.
   */
  leave(): Promise<void> {
    if (!this.#isPart) this.#succession.leave();
    this.#left ??= this.#engine.leave(this.#membership.group);
    return this.#left;
  }
}
