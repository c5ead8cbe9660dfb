import type { DType } from './dtypes.js';
import type { Engine, Formula, OptimizerStep } from './engine.js';
import { InvalidArgument } from './errors.js';

/** A learning rate: a number, or a function that gets the number of steps taken so far and returns the rate of the next step. */
export type LearningRate = number | ((step: number) => number);

let made = 0;

// An engine that has been left, and that nobody else holds, has freed all.
const unreachable = new FinalizationRegistry<{ engine: WeakRef<Engine>; id: number }>(({ engine, id }) => {
  void engine.deref()?.forget(id);
});

/**
 * Changes parameters by their gradients, with MLX's formulas, names and defaults. The group's module keeps the state, which covers only
 * this rank's shards, so an optimizer must be used with one group only.
 */
export abstract class Optimizer {
  readonly #id = ++made;
  readonly #formula: Formula;
  readonly #numbers: readonly number[];
  readonly #stateDtype: DType | undefined;
  #learningRate: LearningRate;
  #step = 0;
  #isWatched = false;

  protected constructor(formula: Formula, learningRate: LearningRate, numbers: readonly number[], stateDtype: DType | undefined) {
    this.#formula = formula;
    this.#learningRate = learningRate;
    this.#numbers = numbers;
    this.#stateDtype = stateDtype;
    this.next();
  }

  /** Steps taken. */
  get step(): number {
    return this.#step;
  }

  /** The learning rate of the next step. */
  get learningRate(): number {
    return typeof this.#learningRate === 'number' ? this.#learningRate : this.#learningRate(this.#step);
  }

  set learningRate(rate: LearningRate) {
    this.#learningRate = rate;
  }

  /** @internal Returns what the core needs for the next step. Throws `InvalidArgument` for a learning rate that is not valid. */
  next(): OptimizerStep {
    const learningRate = this.learningRate;
    if (!(learningRate >= 0 && Number.isFinite(learningRate))) {
      throw new InvalidArgument(`the learning rate of step ${this.#step} is ${learningRate}; it must be a number from 0`);
    }
    return { id: this.#id, formula: this.#formula, learningRate, numbers: this.#numbers, stateDtype: this.#stateDtype };
  }

  /** @internal Has the engine free what it keeps for this optimizer once the program has dropped it. */
  watch(engine: Engine): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    unreachable.register(this, { engine: new WeakRef(engine), id: this.#id });
  }

  /** @internal Called when a step has been taken. */
  advance(): void {
    ++this.#step;
  }
}

/** The options of all optimizers. */
export interface OptimizerOptions {
  /** The dtype of the state, f16, bf16, f32 or f64; unset: the gradient's own. */
  readonly stateDtype?: DType | undefined;
}
