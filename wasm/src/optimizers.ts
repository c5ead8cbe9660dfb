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

/** Of SGD. */
export interface SGDOptions extends OptimizerOptions {
  readonly momentum?: number;
  readonly weightDecay?: number;
  readonly dampening?: number;
  /** Needs momentum, and no dampening. */
  readonly nesterov?: boolean;
}

/** p -= rate (g + weightDecay p), with momentum where there is one. */
export class SGD extends Optimizer {
  constructor(learningRate: LearningRate, options: SGDOptions = {}) {
    const { momentum = 0, weightDecay = 0, dampening = 0, nesterov = false, stateDtype } = options;
    super('SGD', learningRate, [momentum, weightDecay, dampening, nesterov ? 1 : 0], stateDtype);
  }
}

/** Of RMSprop. */
export interface RMSpropOptions extends OptimizerOptions {
  readonly alpha?: number;
  readonly eps?: number;
}

export class RMSprop extends Optimizer {
  constructor(learningRate: LearningRate, { alpha = 0.99, eps = 1e-8, stateDtype }: RMSpropOptions = {}) {
    super('RMSprop', learningRate, [alpha, eps], stateDtype);
  }
}

/** Of Adagrad. */
export interface AdagradOptions extends OptimizerOptions {
  readonly eps?: number;
}

export class Adagrad extends Optimizer {
  constructor(learningRate: LearningRate, { eps = 1e-8, stateDtype }: AdagradOptions = {}) {
    super('Adagrad', learningRate, [eps], stateDtype);
  }
}

/** Of AdaDelta. */
export interface AdaDeltaOptions extends OptimizerOptions {
  readonly rho?: number;
  readonly eps?: number;
}

export class AdaDelta extends Optimizer {
  constructor(learningRate: LearningRate, { rho = 0.9, eps = 1e-6, stateDtype }: AdaDeltaOptions = {}) {
    super('AdaDelta', learningRate, [rho, eps], stateDtype);
  }
}

/** Of Adam. */
export interface AdamOptions extends OptimizerOptions {
  readonly betas?: readonly [number, number];
  readonly eps?: number;
  /** Off unless given, as in MLX; PyTorch always corrects. */
  readonly biasCorrection?: boolean;
}

export class Adam extends Optimizer {
  constructor(learningRate: LearningRate, { betas = [0.9, 0.999], eps = 1e-8, biasCorrection = false, stateDtype }: AdamOptions = {}) {
    super('Adam', learningRate, [...betas, eps, biasCorrection ? 1 : 0], stateDtype);
  }
}

/** Of AdamW. */
export interface AdamWOptions extends AdamOptions {
  readonly weightDecay?: number;
}

/** Adam on p (1 - rate weightDecay). */
export class AdamW extends Optimizer {
  constructor(learningRate: LearningRate, options: AdamWOptions = {}) {
    const { betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0.01, biasCorrection = false, stateDtype } = options;
    super('AdamW', learningRate, [...betas, eps, weightDecay, biasCorrection ? 1 : 0], stateDtype);
  }
}

/** Of Adamax. */
export interface AdamaxOptions extends OptimizerOptions {
  readonly betas?: readonly [number, number];
  readonly eps?: number;
}

export class Adamax extends Optimizer {
  constructor(learningRate: LearningRate, { betas = [0.9, 0.999], eps = 1e-8, stateDtype }: AdamaxOptions = {}) {
    super('Adamax', learningRate, [...betas, eps], stateDtype);
  }
}

/** Of Lion. */
export interface LionOptions extends OptimizerOptions {
  readonly betas?: readonly [number, number];
  readonly weightDecay?: number;
}

export class Lion extends Optimizer {
  constructor(learningRate: LearningRate, { betas = [0.9, 0.99], weightDecay = 0, stateDtype }: LionOptions = {}) {
    super('Lion', learningRate, [...betas, weightDecay], stateDtype);
  }
}
