import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { News } from '../../page/news.js';
import type { Trainer } from '../../page/trainer.js';
import { next, numberNames, type TrainerNumbers } from '../../page/trainer_module.js';
import { train } from '../../page/training.js';
import type { AverageRequest, Engine, Operation, Synced, SyncRequest, WorldState } from '../../src/engine.js';
import { Group } from '../../src/group.js';

/** A trainer that asks for a given list of actions; each of them changes the numbers as it says. */
class ScriptedTrainer {
  readonly calls: string[] = [];
  readonly #acts: readonly (readonly [number, Partial<TrainerNumbers>])[];
  #at = 0;
  #numbers = Object.fromEntries(numberNames.map((name) => [name, 0])) as Record<(typeof numberNames)[number], number>;
  #written = '';
  problem = 'the hash of rank 2 differs';

  constructor(acts: readonly (readonly [number, Partial<TrainerNumbers>])[]) {
    this.#acts = acts;
    this.#numbers.loss = NaN;
  }
  get next(): number {
    return this.#acts[this.#at]?.[0] ?? next.end;
  }
  get numbers(): TrainerNumbers {
    return this.#numbers;
  }
  compute(samples: number): boolean {
    this.calls.push(`compute ${samples}`);
    this.#goOn();
    return true;
  }
  exchange(): object {
    return { input: 'input', output: 'output', stream: 1 };
  }
  average(): object {
    return { gradients: 'gradients', weight: 3, stream: 0, allReduceSize: 10, communicationType: undefined };
  }
  done(): void {
    this.calls.push('done');
    this.#goOn();
  }
  write(bytes: number): string {
    this.#written += 'x'.repeat(bytes);
    return this.#written;
  }
  writeAnew(): void {
    this.#written = '';
  }
  #goOn(): void {
    Object.assign(this.#numbers, this.#acts[this.#at++]?.[1]);
  }
}

function fakeGroup(calls: string[]): Group {
  const note =
    (name: string) =>
    async (...args: unknown[]): Promise<void> =>
      void calls.push([name, ...args.map((arg) => JSON.stringify(arg))].join(' '));
  const traffic = { sent: 10, received: 20 };
  const methods = ['broadcast', 'allSum', 'allGather', 'averageGradients'].map((name) => [name, note(name)]);
  return { ...Object.fromEntries(methods), traffic } as Group;
}

test('the trainer is asked what comes next, and gets it', async () => {
  const trainer = new ScriptedTrainer([
    [next.broadcast, { parameters: 100, steps: 2, batch: 4, context: 8, secondsPerSample: 0.01 }],
    [next.compute, {}],
    [next.allSum, { validations: 1, validationLoss: 5 }],
    [next.average, {}],
    [next.compute, { step: 1, loss: 4, share: 3 }],
    [next.allGather, {}],
  ]);
  const news: News[] = [];
  await train(fakeGroup(trainer.calls), trainer as unknown as Trainer, (item) => news.push(item));
  assert.deepEqual(trainer.calls, [
    'broadcast "output" 0 {"into":"output","stream":1}',
    'done',
    'compute 5',
    'allSum "input" {"into":"output","stream":1}',
    'done',
    'averageGradients "gradients" {"weight":3,"stream":0,"allReduceSize":10}',
    'done',
    'compute 5',
    'allGather "input" {"into":"output","stream":1}',
    'done',
  ]);
  assert.deepEqual(
    news.filter(({ kind }) => kind !== 'text').map(({ kind }) => kind),
    ['prepared', 'validation', 'step'],
  );
  const step = news.find((item) => item.kind === 'step');
  assert.deepEqual([step?.step, step?.loss, step?.numbers.samples, step?.numbers.batch, step?.numbers.sent], [1, 4, 3, 4, 10]);
  const last = news.at(-1);
  assert.deepEqual(last, { kind: 'text', text: 'x'.repeat(240) });
});

test('a tab that gets the state of the others tells their steps, and a loss once it has taken one itself', async () => {
  const trainer = new ScriptedTrainer([
    [next.broadcast, { parameters: 100, steps: 200, batch: 4, context: 8 }],
    [next.broadcast, { step: 120 }],
    [next.compute, { step: 121, loss: 4 }],
  ]);
  const news: News[] = [];
  await train(fakeGroup(trainer.calls), trainer as unknown as Trainer, (item) => news.push(item));
  const steps = news.map((item) => (item.kind === 'prepared' || item.kind === 'step') && [item.kind, item.step]).filter(Boolean);
  assert.deepEqual(steps, [
    ['prepared', 0],
    ['prepared', 120],
    ['step', 121],
  ]);
});

test('what the trainer finds wrong ends the training', async () => {
  const trainer = new ScriptedTrainer([[next.failed, {}]]);
  await assert.rejects(
    train(fakeGroup([]), trainer as unknown as Trainer, () => undefined),
    { message: 'the hash of rank 2 differs' },
  );
});

/** A trainer that asks for few averages: each inner step adds one to its parameter. */
class TrainerOfFewAverages {
  readonly begun: number[] = [];
  readonly parameters = { w: Float32Array.of(0) };
  readonly numbers = {
    steps: 6,
    averageEvery: 2,
    parameters: 1,
    step: 0,
    loss: NaN,
    share: 3,
    batch: 4,
    context: 8,
    secondsPerSample: 0.02,
  };
  readonly problem = 'the loss of step 3 is nan';
  next: number = next.outer;
  isDone = false;

  constructor(readonly failsIn = -1) {}

  outer(): object {
    return { parameters: this.parameters, options: { innerSteps: 2, learningRate: 1, momentum: 0 } };
  }
  beginStep({ number }: { number: number }): void {
    this.begun.push(number);
    this.next = next.compute;
  }
  compute(): boolean {
    this.parameters.w[0] = (this.parameters.w[0] ?? 0) + 1;
    ++this.numbers.step;
    this.numbers.loss = 4;
    this.next = this.numbers.step - 1 === this.failsIn ? next.failed : next.outer;
    return true;
  }
  done(): void {
    this.isDone = true;
    this.next = next.end;
  }
  write(): string {
    return 'x';
  }
  writeAnew(): void {}
}

/** A world of this side and another rank that does the same. */
class Twins {
  readonly seat = { rank: 1, size: 2, guests: 1, elastic: true, epoch: 3 };
  readonly traffic = { sent: 0, received: 0 };
  readonly memory = undefined;
  readonly calls: string[] = [];
  readonly weights: (readonly [number | undefined, number | undefined])[] = [];

  constructor(readonly votes: boolean[] = []) {}

  async worldState(): Promise<WorldState> {
    return { failure: undefined, lineage: 0n, doors: [] };
  }
  async run({ kind, input }: Operation): Promise<Uint8Array> {
    this.calls.push(kind);
    const own = input?.at as Uint8Array;
    const both = new Uint8Array(2 * own.length);
    for (const at of [0, own.length]) both.set(own, at);
    return both;
  }
  async split(): Promise<undefined> {}
  async sync(request: SyncRequest): Promise<Synced> {
    return { taken: false, step: request.step, values: '{}' };
  }
  async average({ weight, totalWeight }: AverageRequest): Promise<void> {
    this.calls.push('average');
    this.weights.push([weight, totalWeight]);
  }
  async vote(): Promise<boolean> {
    return this.votes.shift() ?? true;
  }
  async leave(): Promise<void> {
    this.calls.push('leave');
  }
}

const groupOf = (engine: Twins): Group => new Group(engine as unknown as Engine, { group: 7, rank: 1, size: 2 });

test('a trainer that asks for few averages gets its inner steps, and an average after each interval', async () => {
  const [trainer, engine] = [new TrainerOfFewAverages(), new Twins()];
  const news: News[] = [];
  await train(groupOf(engine), trainer as unknown as Trainer, (item) => news.push(item));
  assert.deepEqual(trainer.begun, [0, 1, 2, 3, 4, 5]);
  assert.ok(trainer.isDone);
  const step = ['all_gather', 'average'];
  assert.deepEqual(engine.calls, ['all_gather', ...step, ...step, ...step]);
  // Three samples a step on either side.
  assert.deepEqual(engine.weights, Array(3).fill([6, 12]));
  assert.equal(trainer.parameters.w[0], 6);
  const [prepared] = news;
  assert.deepEqual(prepared?.kind === 'prepared' && prepared.averageEvery, 2);
  assert.equal(news.filter(({ kind }) => kind === 'step').length, 6);
});

test('a loss that is no number, or a rank that is lost, ends the training with few averages in this world', async () => {
  const failing = new Twins();
  await assert.rejects(
    train(groupOf(failing), new TrainerOfFewAverages(3) as unknown as Trainer, () => undefined),
    { code: 'invalid_argument', message: 'the loss of step 3 is nan' },
  );
  assert.equal(failing.calls.at(-1), 'leave');
  const losing = new Twins([true, false]);
  const trainer = new TrainerOfFewAverages();
  await assert.rejects(
    train(groupOf(losing), trainer as unknown as Trainer, () => undefined),
    { code: 'peer_lost' },
  );
  assert.deepEqual([trainer.begun, trainer.isDone], [[0, 1, 2, 3], false]);
});
