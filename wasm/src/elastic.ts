import { AbortError, AuthenticationError, Cancelled, InvalidArgument, MismatchError, PeerLost, RingletError } from './errors.js';
import { type AverageOptions, averageSettings } from './gradients.js';
import type { Group } from './group.js';
import type { JoinOptions } from './join.js';
import { evenRows } from './parts.js';
import { Entrance, isAnotherGuest, mostDisagreements, underSignals } from './reform.js';
import { StateValues } from './state_values.js';
import type { Tree } from './trees.js';
import { flatten } from './trees.js';

/** How far to train. The same on all ranks. */
export interface TrainingPlan {
  /** The number of the last step to commit, counted from 1. */
  readonly steps: number;
  /** Samples of a step, of all ranks together; at least 1. */
  readonly batch: number;
}

/** One attempt at a training step on this side. It is valid until the step function's promise has ended. */
export interface Step {
  /** How many steps were committed before it. The same on all ranks. */
  readonly number: number;
  /** This side's part of the batch: `count` samples from `first` on. The parts of all ranks are the whole batch. */
  readonly first: number;
  readonly count: number;
  /** All ranks of this attempt, for the step's own collectives. */
  readonly world: Group;
  /**
   * Replaces gradients, which are means over this side's own samples, by their means over the whole batch, in place. Names, dtypes and
   * shapes are compared between the ranks at a tree's first use. If `count` is 0, the gradients may have any contents.
   */
  average<T extends Tree>(gradients: T): Promise<T>;
  /**
   * Runs `apply`, which changes the state, on all ranks or on none; the last call of a step. Where a rank was lost it rejects, which the step
   * function is to let pass. If `apply` throws, this side leaves.
   */
  commit(apply: () => void | Promise<void>): Promise<void>;
}

/** What a trainer tells when its ranks have become others. */
export interface MembershipChange {
  /** All who train now. */
  readonly world: Group;
  /** Why this side's former group has ended, with the culprit's rank in it. */
  readonly cause: RingletError;
  /** How many steps are committed. */
  readonly step: number;
  /** The milliseconds from that until this side trained again. */
  readonly pause: number;
}

/** Options of ElasticTrainer. */
export interface ElasticTrainerOptions {
  /** How gradients are averaged, as on the native ranks. The samples are the weights. */
  readonly average?: Omit<AverageOptions, 'weight' | 'signal'> | undefined;
  /** Whether this side joins the others again when they go on without it; true unless given. */
  readonly rejoin?: boolean | undefined;
  /** Runs when this side is in a group again after another one has ended. It may not call collectives. */
  readonly onChange?: ((change: MembershipChange) => void) | undefined;
  /**
   * Runs in each world that this side has joined, before it gets the state. It may call collectives: those that the native ranks call in
   * their `on_world`, and in the first world before they make a trainer.
   */
  readonly onWorld?: ((world: Group) => void | Promise<void>) | undefined;
  /**
   * Runs when the state has been filled by other ranks, before the next step: what follows from the state is to be set anew. It gets the
   * number of committed steps.
   */
  readonly onState?: ((step: number) => void) | undefined;
}

/** What runs one step. It may be called several times for one step, and changes nothing that lasts before Step.commit(). */
export type StepFunction = (step: Step) => Promise<void>;

/** What a native rank tells when a world begins, in this order (native/elastic/trainer_state.cpp). */
const toldNames = ['isSettled', 'step', 'saved', 'isSharded', 'minRanks', 'steps', 'batch', 'savesEvery', 'keeps'] as const;
type Told = Readonly<Record<(typeof toldNames)[number], bigint>>;
const noneTold: Told = { isSettled: 0n, step: 0n, saved: 0n, isSharded: 0n, minRanks: 0n, steps: 0n, batch: 0n, savesEvery: 0n, keeps: 0n };

const hasBegun = ({ isSettled }: Told): boolean => isSettled !== 0n;

/** Why a world has ended, and when this side learnt it. */
interface Loss {
  readonly cause: RingletError;
  readonly at: number;
}

/** The training loop of ElasticTrainer, for any platform. */
export class ElasticLoop {
  readonly #entrance: Entrance;
  readonly #where: JoinOptions;
  readonly #state: Tree;
  readonly #options: ElasticTrainerOptions;
  readonly #average: ReturnType<typeof averageSettings>;
  /** Values that belong to the state. They may be set in the function given to Step.commit(), alike on all ranks. */
  readonly values = new StateValues();
  #world: Group | undefined;
  // Those of the native ranks of the last world.
  #doors: readonly string[] = [];
  #step = 0;
  // This side's state is not whole: it was being overwritten or changed.
  #lacks = false;
  // The program's function changes the state.
  #isApplying = false;
  #isShort = false;
  // By native rank: whether it has joined a training that had begun.
  #joined: readonly boolean[] = [];
  #disagreements = 0;
  #isRunning = false;
  #leaving = new AbortController();

  protected constructor(
    join: (options: JoinOptions) => Promise<Group>,
    where: JoinOptions,
    state: Tree,
    options: ElasticTrainerOptions = {},
  ) {
    this.#entrance = new Entrance(join, where);
    this.#where = where;
    this.#state = state;
    this.#options = options;
    const average = options.average ?? {};
    if ('weight' in average) throw new InvalidArgument('average.weight is set; an ElasticTrainer weighs each rank by its samples');
    this.#average = averageSettings(average);
    flatten(state);
  }

  /** All ranks that train now; undefined while this side is in no group. */
  get world(): Group | undefined {
    return this.#world;
  }

  /** How many steps are committed. */
  get step(): number {
    return this.#step;
  }

  /**
   * Joins, gets the state of the others, and trains until `plan.steps` steps are committed; this side then stays in the group until leave().
   * Until then Node does not end. Rejects with what `step` throws, with
   * `InvalidArgument` if `step` ends without a commit or if the native ranks have sharded state, with `MismatchError` if this side's plan is
   * not that of the others, or its tensors in name, dtype or shape, with what `join` throws, and with `PeerLost` if it cannot join the others
   * again.
   */
  async run(plan: TrainingPlan, step: StepFunction): Promise<void> {
    if (!(Number.isSafeInteger(plan.steps) && plan.steps >= 0)) throw new InvalidArgument(`${plan.steps} is no number of steps`);
    if (!(Number.isSafeInteger(plan.batch) && plan.batch >= 1))
      throw new InvalidArgument(`the plan's batch is ${plan.batch}; a step needs at least one sample`);
    if (this.#isRunning) throw new InvalidArgument('the trainer runs already');
    this.#isRunning = true;
    this.#isApplying = false;
    this.#leaving = new AbortController();
    try {
      await this.#trainOn(plan, step);
    } catch (error) {
      await this.#leaveWorld();
      throw error;
    } finally {
      this.#isRunning = false;
    }
  }

  /** Leaves the group, and ends run() with `Cancelled` if it is under way. Never rejects. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#leaveWorld();
  }

  async #trainOn(plan: TrainingPlan, step: StepFunction): Promise<void> {
    for (let loss: Loss | undefined; ;) {
      const isNew = this.#world === undefined;
      try {
        const world = this.#world ?? (await this.#joinWorld(loss?.cause));
        if (isNew) await this.#options.onWorld?.(world);
        return await this.#takePart(world, plan, step, loss);
      } catch (error) {
        this.#stopIfLeft();
        if (!this.#goesOnAfter(error)) throw error;
        loss = { cause: error, at: performance.now() };
      }
      await this.#leaveWorld();
    }
  }

  async #takePart(world: Group, plan: TrainingPlan, step: StepFunction, loss: Loss | undefined): Promise<void> {
    await this.#settle(world, plan);
    if (loss !== undefined) this.#options.onChange?.({ cause: loss.cause, pause: performance.now() - loss.at, world, step: this.#step });
    // The native ranks only vote until others join them, which ends this world.
    while (this.#isShort) await this.#vote(world);
    while (this.#step < plan.steps) await this.#attempt(world, plan, step);
    // No rank leaves before all know that the last step is committed.
    await this.#vote(world);
  }

  async #joinWorld(cause: RingletError | undefined): Promise<Group> {
    const signals = [this.#leaving.signal, this.#where.signal];
    const world = await underSignals(signals, (any) => this.#entrance.joinPersistently(any, cause, this.#doors));
    if (this.#leaving.signal.aborted) await world.leave();
    this.#stopIfLeft();
    this.#world = world;
    this.#doors = (await world.inner.engine.worldState()).doors;
    return world;
  }

  #stopIfLeft(): void {
    if (this.#leaving.signal.aborted) throw new Cancelled('the trainer has left the group');
  }

  /** Makes this side's state that of the others: what ElasticTrainer::State::settle() of the native library does. */
  async #settle(world: Group, plan: TrainingPlan): Promise<void> {
    const { stream } = this.#average;
    const natives = await this.#tell(world, plan);
    // Those whose training has begun are right, and otherwise rank 0 is. Others that have joined leave where they differ.
    const right = natives.find(hasBegun) ?? natives[0] ?? noneTold;
    this.#joined = natives.some(hasBegun) ? natives.map((one) => !hasBegun(one)) : [];
    if (right.isSharded !== 0n)
      throw new InvalidArgument('the native ranks keep state in shards (ElasticFsdp, ElasticFullyShard), and browsers hold none of them');
    this.#requireSamePlan(right, plan, world.rank);
    this.#isShort = world.world.elastic && natives.some(({ minRanks }) => BigInt(natives.length) < minRanks);
    // The native ranks form a group of their own.
    if (world.world.guests > 0) await world.split(-1, -1, { stream });
    const { engine, number, caller } = world.inner;
    const request = { group: number, stream, state: caller.leaves(this.#state), values: this.values.toText(), lacks: this.#lacks };
    this.#lacks = true;
    const synced = await engine.sync({ ...request, step: this.#step });
    this.#lacks = false;
    this.#step = synced.step;
    if (!synced.taken) return;
    this.values.take(synced.values);
    this.#options.onState?.(this.#step);
  }

  /** What the native ranks tell, by rank. They do not count what a guest tells. */
  async #tell(world: Group, plan: TrainingPlan): Promise<Told[]> {
    const own = { ...noneTold, step: BigInt(this.#step), steps: BigInt(plan.steps), batch: BigInt(plan.batch) };
    const { stream } = this.#average;
    const told = await world.allGather(
      BigUint64Array.from(toldNames, (name) => own[name]),
      { stream },
    );
    return Array.from({ length: world.size - world.world.guests }, (_, rank) => {
      const entries = toldNames.map((name, place) => [name, told[rank * toldNames.length + place] ?? 0n]);
      return { ...noneTold, ...Object.fromEntries(entries) };
    });
  }

  #requireSamePlan(right: Told, plan: TrainingPlan, own: number): void {
    if (right.steps === BigInt(plan.steps) && right.batch === BigInt(plan.batch)) return;
    throw new MismatchError(
      `the ranks' plans differ: the native ranks are to train ${this.describePlan(right.steps, right.batch)}, and this side, rank ${own}, ` +
        `is to train ${this.describePlan(plan.steps, plan.batch)}; give all the same`,
      own,
    );
  }

  /** @internal */
  protected describePlan(steps: number | bigint, batch: number | bigint): string {
    return `${steps} steps of ${batch} samples`;
  }

  async #attempt(world: Group, plan: TrainingPlan, step: StepFunction): Promise<void> {
    const rows = evenRows(plan.batch, world.size);
    const first = rows.slice(0, world.rank).reduce((sum, count) => sum + count, 0);
    const count = rows[world.rank] ?? 0;
    let isCommitted = false;
    await step({
      number: this.#step,
      first,
      count,
      world,
      average: async (gradients) => {
        if (isCommitted) throw new InvalidArgument('Step.average() after commit()');
        await this.#averageGradients(world, gradients, count, plan.batch);
        return gradients;
      },
      commit: async (apply) => {
        if (isCommitted) throw new InvalidArgument('Step.commit() is called a second time in one step');
        await this.#vote(world);
        isCommitted = true;
        this.#isApplying = this.#lacks = true;
        await apply();
        this.#isApplying = this.#lacks = false;
        ++this.#step;
        this.#disagreements = 0;
      },
    });
    if (!isCommitted) throw new InvalidArgument('the step function has ended without a call of Step.commit()');
  }

  async #averageGradients(world: Group, gradients: Tree, weight: number, totalWeight: number): Promise<void> {
    // What has the weight 0 may hold infinities.
    if (weight === 0) for (const { tensor } of flatten(gradients)) tensor.data.fill(0 as never);
    const { engine, number, caller } = world.inner;
    await engine.average({ ...this.#average, group: number, leaves: caller.leaves(gradients), weight, totalWeight });
  }

  async #vote(world: Group): Promise<void> {
    if (!world.world.elastic) return;
    const { engine, number } = world.inner;
    if (await engine.vote({ group: number, mine: true, trains: true, timeout: undefined })) return;
    throw new PeerLost('a rank was lost while the ranks voted on a step');
  }

  /** Whether the others may go on without this side, and it may join them again. */
  #goesOnAfter(error: unknown): error is RingletError {
    // What joining has said is final.
    if (!this.#world?.world.elastic || this.#options.rejoin === false || this.#isApplying || !(error instanceof RingletError)) return false;
    if (error instanceof InvalidArgument || error instanceof AuthenticationError || error instanceof AbortError) return false;
    // Another guest, or a native rank that has joined, leaves when it learns that it does not train the same.
    if (!(error instanceof MismatchError)) return true;
    const isOfAnother = isAnotherGuest(error.rank, this.#world.world) || this.#joined[error.rank] === true;
    return isOfAnother && ++this.#disagreements < mostDisagreements;
  }

  async #leaveWorld(): Promise<void> {
    const world = this.#world;
    this.#world = undefined;
    await world?.leave();
  }
}
