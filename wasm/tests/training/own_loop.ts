// What `native_trainer --loop` does, for browsers and Node: a loop without ElasticTrainer, which goes on by reform().
import type { Group, Reformed, ReformOptions, RingletError } from '../../src/node.js';
import { type Diary, Model } from './elastic_program.js';

/** A world that this side has come into after another one: by rank the rank in it, who was lost, and why. */
export type Change = Pick<Reformed, 'before' | 'lost'> & { readonly epoch: number; readonly code: string; readonly culprit: number };

export class OwnLoop {
  readonly model = new Model();
  readonly changes: Change[] = [];
  world: Group;
  isOver = false;
  #isLast = false;

  constructor(
    world: Group,
    readonly diary: Diary,
    readonly options: ReformOptions = {},
  ) {
    this.world = world;
  }

  /** Counts steps with the others until rank 0 says that one was the last, and leaves. */
  async run(): Promise<void> {
    try {
      for (let isNew = true; !this.#isLast;) {
        try {
          if (isNew) await this.#takeState();
          isNew = false;
          await this.#takeStep();
        } catch (error) {
          const { code } = error as RingletError;
          if (code !== 'peer_lost' && code !== 'cancelled') throw error;
          await this.#reform();
          isNew = true;
        }
      }
      await this.world.leave();
    } finally {
      this.isOver = true;
    }
  }

  async #reform(): Promise<void> {
    const { world, before, lost, cause } = await this.world.reform(this.options);
    this.changes.push({ before, lost, epoch: world.epoch, code: cause.code, culprit: cause.rank });
    this.diary.changes.push({ step: this.model.steps[0] ?? 0, cause: cause.message });
    this.world = world;
  }

  async #takeState(): Promise<void> {
    const exact = await this.world.broadcast(this.model.exact, 0);
    const steps = await this.world.broadcast(this.model.steps, 0);
    this.model.exact.set(exact);
    this.model.steps.set(steps);
  }

  async #takeStep(): Promise<void> {
    const { exact, steps } = this.model;
    const step = steps[0] ?? 0;
    // The last element is 1 in the last step.
    const sums = await this.world.allSum(
      Float32Array.from({ length: exact.length + 1 }, (_, i) => (i < exact.length ? (step * 7 + i) % 13 : 0)),
    );
    if (!(await this.world.agree(true))) return;
    exact.forEach((value, i) => (exact[i] = value + Math.fround((sums[i] ?? 0) / this.world.size)));
    steps[0] = step + 1;
    this.diary.journal.push([step, this.world.size, this.world.epoch, this.model.hash()]);
    this.#isLast = (sums.at(-1) ?? 0) > 0;
  }
}
