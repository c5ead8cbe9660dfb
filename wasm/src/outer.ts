import type { DType } from './dtypes.js';
import { ElasticLoop, type ElasticTrainerOptions, type Step } from './elastic.js';
import { InvalidArgument } from './errors.js';
import { cutFragments, type Fragment, overlappedSteps, parameterOf, stepsFor } from './fragment.js';
import { averageSettings, type AverageOptions, type BlockWire } from './gradients.js';
import type { Group } from './group.js';
import type { JoinOptions } from './join.js';
import type { LearningRate } from './optimizer.js';
import type { StateValues } from './state_values.js';
import type { Tensor } from './tensors.js';
import { flatten, type Tree } from './trees.js';

/** Options of OuterTrainer, the same as on the native ranks. The defaults of the outer optimizer are DiLoCo's. */
export interface OuterTrainerOptions {
  /** Steps that a rank takes alone between two averages of the same parameter; 50 unless given. */
  readonly innerSteps?: number | undefined;
  /** In how many parts the parameters are averaged, one after the other; it divides `innerSteps`; 1 unless given. */
  readonly fragments?: number | undefined;
  /** Inner steps that go on while a fragment is averaged, below `innerSteps` / `fragments`; 0 unless given: this side waits. */
  readonly overlap?: number | undefined;
  /** With `overlap`, what a rank keeps of its own parameters, from 0 to 1; 0.5 unless given. */
  readonly mixing?: number | undefined;
  /** Whether slower ranks take fewer inner steps, so that the others do not wait for them; false unless given. */
  readonly bySpeed?: boolean | undefined;
  /** Returns the seconds by which `bySpeed` measures inner steps; unless given, those that pass. */
  readonly clock?: (() => number) | undefined;
  /** Of the outer optimizer; 0.7 unless given. A function gets the number of averages before. */
  readonly learningRate?: LearningRate | undefined;
  /** Of the outer optimizer, from 0; 0.9 unless given. */
  readonly momentum?: number | undefined;
  /** Whether that momentum is Nesterov's; true unless given. */
  readonly nesterov?: boolean | undefined;
  /** How the differences cross the network; unset: in the parameters' dtype. */
  readonly wire?: DType | BlockWire | undefined;
  /** Of the loop, whose steps are the averages: onState gets their number. */
  readonly elastic?: (Omit<ElasticTrainerOptions, 'average'> & { readonly average?: LoopAverageOptions | undefined }) | undefined;
}

type LoopAverageOptions = Omit<AverageOptions, 'communicationType' | 'weight' | 'signal'>;

/** One step that a rank takes alone. */
export interface InnerStep {
  /** Counts the inner steps from 0, alike on all ranks; a slower rank leaves some numbers out. */
  readonly number: number;
  /** This side's number among those that train now. */
  readonly rank: number;
  /** How many train now. */
  readonly ranks: number;
}

/** Takes an inner step: changes the parameters, and returns how many samples it has used, this side's weight. It calls no collective. */
export type InnerFunction = (step: InnerStep) => number | Promise<number>;

const innerStepsName = 'outer_inner_steps';
const fragmentsName = 'outer_fragments';
const meanSamplesName = 'outer_mean_samples';

class Averages extends ElasticLoop {
  constructor(join: (options: JoinOptions) => Promise<Group>, where: JoinOptions, state: Tree, options: ElasticTrainerOptions) {
    super(join, where, state, options);
  }

  protected override describePlan(steps: number | bigint): string {
    return `${steps} averages`;
  }
}

/** The averages of one attempt. */
interface UnderWay {
  readonly reports: Promise<Float64Array>;
  readonly averages: Promise<void>;
  /** Of all ranks' samples; the weights are shares of it. */
  readonly expectedTotal: number;
  readonly inTurn: readonly number[];
  readonly sent: readonly number[];
}

/** What OuterTrainer does, for any platform: the same calls in the same order as native/outer/outer_trainer.cpp. */
export class OuterLoop {
  readonly #options: Checked;
  readonly #average: ReturnType<typeof averageSettings>;
  readonly #interval: number;
  readonly #fragments: readonly Fragment[];
  readonly #loop: Averages;
  #round = 0;
  #planned: number;
  #taken = 0;
  #seconds = 0;
  #secondsPerStep = 0;
  // Of this side since each fragment's last average.
  #samples: number[];

  protected constructor(
    join: (options: JoinOptions) => Promise<Group>,
    where: JoinOptions,
    parameters: Tree,
    options: OuterTrainerOptions = {},
  ) {
    const leaves = flatten(parameters).map(parameterOf);
    this.#options = checkedOptions(options, leaves.length);
    const { innerSteps, fragments, momentum, elastic } = this.#options;
    this.#average = averageSettings({ ...elastic.average, communicationType: options.wire });
    this.#interval = this.#planned = innerSteps / fragments;
    this.#fragments = cutFragments(leaves, fragments);
    this.#samples = this.#fragments.map(() => 0);
    const state = {
      parameters: Object.fromEntries(leaves.map(({ name, shared }) => [name, shared])),
      outer_optimizer: momentum > 0 ? Object.fromEntries(leaves.map(({ name, momentum: v }) => [`${name}.v`, v])) : {},
    };
    this.#loop = new Averages(join, where, state, { ...elastic, onState: (step) => this.#takeOver(step) });
    this.values.set(innerStepsName, BigInt(innerSteps)).set(fragmentsName, BigInt(fragments));
  }

  /** All ranks that train now; undefined while this side is in no group. */
  get world(): Group | undefined {
    return this.#loop.world;
  }

  /** How many averages are done. */
  get averages(): number {
    return this.#loop.step;
  }

  /** How many inner steps are done, as `InnerStep.number` counts them. */
  get steps(): number {
    return this.averages * this.#interval;
  }

  /** The shared parameters as of the last average, by their names and in memory of their own; the same bits on all ranks. */
  get sharedParameters(): { readonly [name: string]: Tensor } {
    const all = this.#fragments.flatMap(({ parameters }) => parameters);
    return Object.fromEntries(all.map(({ name, shared }) => [name, shared]));
  }

  /** Values that belong to the state, beside those with names of its own that begin with "outer_". */
  get values(): StateValues {
    return this.#loop.values;
  }

  /**
   * Joins, gets the state of the others, and trains until `steps` inner steps, a multiple of `innerSteps` / `fragments`, are done. Afterwards
   * the parameters are the shared ones, with the same bits on all ranks. Rejects with what `inner` throws, and as ElasticTrainer.run() does.
   */
  async run(steps: number, inner: InnerFunction): Promise<void> {
    if (!(Number.isSafeInteger(steps) && steps >= 0 && steps % this.#interval === 0))
      throw new InvalidArgument(`${steps} inner steps are no multiple of innerSteps / fragments, which is ${this.#interval}`);
    const averages = steps / this.#interval;
    await this.#loop.run({ steps: averages, batch: 1 }, (step) => this.#attempt(step, step.number + 1 === averages, inner));
  }

  /** Leaves the group, and ends run() with `Cancelled` if it is under way. Never rejects. */
  leave(): Promise<void> {
    return this.#loop.leave();
  }

  /** This side has the state of others. What it has learnt since its own last average is of another training. */
  #takeOver(step: number): void {
    const { innerSteps, fragments, elastic } = this.#options;
    const [theirs, parts] = [this.values.get(innerStepsName), this.values.get(fragmentsName)];
    if (theirs !== BigInt(innerSteps) || parts !== BigInt(fragments))
      throw new InvalidArgument(
        `the other ranks train with ${theirs} inner steps and ${parts} fragments, and this side with ${innerSteps} and ${fragments}`,
      );
    for (const fragment of this.#fragments) fragment.adopt(0);
    this.#samples.fill(0);
    this.#beginRound(step);
    elastic.onState?.(step);
  }

  #beginRound(number: number): void {
    this.#round = number;
    this.#taken = this.#seconds = 0;
  }

  async #attempt(step: Step, isLast: boolean, inner: InnerFunction): Promise<void> {
    if (this.#round !== step.number) this.#beginRound(step.number);
    const overlapped = isLast ? 0 : overlappedSteps(this.#planned, this.#options.overlap, this.#interval);
    await this.#takeSteps(this.#planned - overlapped, step.world, inner);
    const underWay = await this.#start(step.world, isLast);
    const overlaps = this.#taken < this.#planned;
    await this.#takeSteps(this.#planned, step.world, inner);
    const reports = await underWay.reports;
    await underWay.averages;
    await step.commit(() => this.#apply(underWay, reports, overlaps));
  }

  /** An attempt that failed has taken some or all of them. They count: only its average is done again. */
  async #takeSteps(until: number, { rank, size }: Group, inner: InnerFunction): Promise<void> {
    const { clock } = this.#options;
    for (; this.#taken < until; ++this.#taken) {
      const begin = clock();
      const used = await inner({ number: this.#round * this.#interval + this.#taken, rank, ranks: size });
      if (!(Number.isFinite(used) && used >= 0))
        throw new InvalidArgument(`an inner step returned ${used} samples; they must be finite and not negative`);
      this.#seconds += clock() - begin;
      this.#samples = this.#samples.map((since) => since + used);
    }
  }

  async #start(world: Group, isLast: boolean): Promise<UnderWay> {
    const count = this.#fragments.length;
    const turn = this.#round % count;
    const inTurn = Array.from({ length: isLast ? count : 1 }, (_, i) => (turn + i) % count);
    const weight = this.#samples[turn] ?? 0;
    if (this.#taken > 0) this.#secondsPerStep = this.#seconds / this.#taken;
    const sent = [...this.#samples];
    const reports = world.allGather(Float64Array.of(weight, this.#secondsPerStep), { stream: this.#average.stream });
    const mean = this.values.get(meanSamplesName);
    const expectedTotal = typeof mean === 'number' ? mean * world.size : totalOf(await reports);
    const trees = inTurn.map((index) => this.#fragment(index).takeDifferences(weight > 0));
    const averages = this.#averageTrees(world, trees, weight, expectedTotal);
    // Where an inner step fails first, nobody waits for these.
    for (const promise of [reports, averages]) promise.catch(() => undefined);
    return { reports, averages, expectedTotal, inTurn, sent };
  }

  async #averageTrees(world: Group, trees: readonly Tree[], weight: number, totalWeight: number): Promise<void> {
    const { engine, number, caller } = world.inner;
    for (const tree of trees) await engine.average({ ...this.#average, group: number, leaves: caller.leaves(tree), weight, totalWeight });
  }

  #apply({ expectedTotal, inTurn, sent }: UnderWay, reports: Float64Array, overlaps: boolean): void {
    const { learningRate, momentum, nesterov, mixing, bySpeed } = this.#options;
    const ranks = reports.length / 2;
    const total = totalOf(reports);
    const rate = typeof learningRate === 'number' ? learningRate : learningRate(this.#round);
    if (!(Number.isFinite(rate) && rate >= 0))
      throw new InvalidArgument(`the learning rate of average ${this.#round} is ${rate}; it must be a number from 0`);
    for (const index of inTurn) {
      const fragment = this.#fragment(index);
      if (ranks > 1 && total !== expectedTotal) fragment.scaleDifferences(expectedTotal / total);
      fragment.applyDifferences({ rate, momentum, nesterov });
      fragment.adopt(overlaps ? mixing : 0);
      this.#samples[index] = (this.#samples[index] ?? 0) - (sent[index] ?? 0);
    }
    this.values.set(meanSamplesName, total / ranks);
    const times = [...reports].filter((_, i) => i % 2 === 1);
    if (bySpeed) this.#planned = stepsFor(this.#interval, this.#secondsPerStep, times);
    this.#beginRound(this.#round + 1);
  }

  #fragment(index: number): Fragment {
    return this.#fragments[index] as Fragment;
  }
}

function totalOf(reports: Float64Array): number {
  let total = 0;
  for (let rank = 0; rank < reports.length / 2; ++rank) total += reports[2 * rank] ?? 0;
  if (!(total > 0))
    throw new InvalidArgument('no rank has used a sample since the last average; the inner step returns how many it has used');
  return total;
}

function checkedOptions(given: OuterTrainerOptions, parameters: number): Checked {
  const { innerSteps = 50, fragments = 1, overlap = 0, mixing = 0.5, bySpeed = false, momentum = 0.9, nesterov = true } = given;
  const { clock = () => performance.now() / 1000, learningRate = 0.7, elastic = {} } = given;
  if (!(Number.isSafeInteger(innerSteps) && innerSteps >= 1))
    throw new InvalidArgument(`innerSteps is ${innerSteps}; it must be at least 1`);
  if (!(Number.isSafeInteger(fragments) && fragments >= 1 && innerSteps % fragments === 0))
    throw new InvalidArgument(`fragments is ${fragments}; it must be at least 1 and divide innerSteps, which is ${innerSteps}`);
  if (fragments > parameters)
    throw new InvalidArgument(`fragments is ${fragments}, but there are ${parameters} parameters; each fragment needs one`);
  const interval = innerSteps / fragments;
  if (!(Number.isSafeInteger(overlap) && overlap >= 0 && overlap < interval))
    throw new InvalidArgument(`overlap is ${overlap}; it must be at least 0 and below innerSteps / fragments, which is ${interval}`);
  if (!(mixing >= 0 && mixing <= 1)) throw new InvalidArgument(`mixing is ${mixing}; it must be from 0 to 1`);
  if (!(momentum >= 0 && Number.isFinite(momentum))) throw new InvalidArgument(`momentum is ${momentum}; it must be 0 or more`);
  return { innerSteps, fragments, overlap, mixing, bySpeed, clock, learningRate, momentum, nesterov, elastic };
}

type Checked = Required<{ readonly [Name in Exclude<keyof OuterTrainerOptions, 'wire'>]: NonNullable<OuterTrainerOptions[Name]> }>;
