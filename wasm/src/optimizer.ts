import type { DType } from './dtypes.js';
import type { Formula, OptimizerStep } from './engine.js';
import { InvalidArgument } from './errors.js';

/** A number, or a function that is asked at each step for the one that comes after so many others. */
export type LearningRate = number | ((step: number) => number);

let made = 0;

/**
 * Changes parameters by their gradients, with MLX's formulas, names and defaults. Its state, of this rank's shards alone, is kept by the
 * group's module: use an optimizer with one group.
 */
export abstract class Optimizer {
  readonly #id = ++made;
  readonly #formula: Formula;
  readonly #numbers: readonly number[];
  readonly #stateDtype: DType | undefined;
  #learningRate: LearningRate;
  #step = 0;

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

  /** Of the next step. */
  get learningRate(): number {
    return typeof this.#learningRate === 'number' ? this.#learningRate : this.#learningRate(this.#step);
  }

  set learningRate(rate: LearningRate) {
    this.#learningRate = rate;
  }

  /** @internal What the core is told of the next step. Throws `InvalidArgument` for a learning rate that is none. */
  next(): OptimizerStep {
    const learningRate = this.learningRate;
    if (!(learningRate >= 0 && Number.isFinite(learningRate))) {
      throw new InvalidArgument(`the learning rate of step ${this.#step} is ${learningRate}; it must be a number from 0`);
    }
    return { id: this.#id, formula: this.#formula, learningRate, numbers: this.#numbers, stateDtype: this.#stateDtype };
  }

  /** @internal A step has been taken. */
  advance(): void {
    ++this.#step;
  }
}

/** What all optimizers can be told. */
export interface OptimizerOptions {
  /** f16, bf16, f32 or f64; unset: the gradient's own. */
  readonly stateDtype?: DType | undefined;
}
