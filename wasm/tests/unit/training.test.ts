import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { News } from '../../page/news.js';
import type { Trainer } from '../../page/trainer.js';
import { next, numberNames, type TrainerNumbers } from '../../page/trainer_module.js';
import { train } from '../../page/training.js';
import type { Group } from '../../src/group.js';

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

test('what the trainer finds wrong ends the training', async () => {
  const trainer = new ScriptedTrainer([[next.failed, {}]]);
  await assert.rejects(
    train(fakeGroup([]), trainer as unknown as Trainer, () => undefined),
    { message: 'the hash of rank 2 differs' },
  );
});
