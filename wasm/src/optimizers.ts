// Made by bindings/generator from the library's tables: see ARCHITECTURE.md, "Tables".
import { type LearningRate, Optimizer, type OptimizerOptions } from './optimizer.js';

/** Options of SGD. */
export interface SGDOptions extends OptimizerOptions {
  /** 0 unless given. */
  readonly momentum?: number | undefined;
  /** 0 unless given. */
  readonly weightDecay?: number | undefined;
  /** 0 unless given. */
  readonly dampening?: number | undefined;
  /** False unless given; needs momentum, and no dampening. */
  readonly nesterov?: boolean | undefined;
}

export class SGD extends Optimizer {
  constructor(learningRate: LearningRate, options: SGDOptions = {}) {
    const { momentum = 0, weightDecay = 0, dampening = 0, nesterov = false, stateDtype } = options;
    super('SGD', learningRate, [momentum, weightDecay, dampening, nesterov ? 1 : 0], stateDtype);
  }
}

/** Options of RMSprop. */
export interface RMSpropOptions extends OptimizerOptions {
  /** 0.99 unless given. */
  readonly alpha?: number | undefined;
  /** 1e-8 unless given. */
  readonly eps?: number | undefined;
}

export class RMSprop extends Optimizer {
  constructor(learningRate: LearningRate, options: RMSpropOptions = {}) {
    const { alpha = 0.99, eps = 1e-8, stateDtype } = options;
    super('RMSprop', learningRate, [alpha, eps], stateDtype);
  }
}

/** Options of Adagrad. */
export interface AdagradOptions extends OptimizerOptions {
  /** 1e-8 unless given. */
  readonly eps?: number | undefined;
}

export class Adagrad extends Optimizer {
  constructor(learningRate: LearningRate, options: AdagradOptions = {}) {
    const { eps = 1e-8, stateDtype } = options;
    super('Adagrad', learningRate, [eps], stateDtype);
  }
}

/** Options of AdaDelta. */
export interface AdaDeltaOptions extends OptimizerOptions {
  /** 0.9 unless given. */
  readonly rho?: number | undefined;
  /** 1e-6 unless given. */
  readonly eps?: number | undefined;
}

export class AdaDelta extends Optimizer {
  constructor(learningRate: LearningRate, options: AdaDeltaOptions = {}) {
    const { rho = 0.9, eps = 1e-6, stateDtype } = options;
    super('AdaDelta', learningRate, [rho, eps], stateDtype);
  }
}

/** Options of Adam. */
export interface AdamOptions extends OptimizerOptions {
  /** [0.9, 0.999] unless given. */
  readonly betas?: readonly [number, number] | undefined;
  /** 1e-8 unless given. */
  readonly eps?: number | undefined;
  /** False unless given; PyTorch always corrects. */
  readonly biasCorrection?: boolean | undefined;
}

export class Adam extends Optimizer {
  constructor(learningRate: LearningRate, options: AdamOptions = {}) {
    const { betas = [0.9, 0.999], eps = 1e-8, biasCorrection = false, stateDtype } = options;
    super('Adam', learningRate, [...betas, eps, biasCorrection ? 1 : 0], stateDtype);
  }
}

/** Options of AdamW. */
export interface AdamWOptions extends OptimizerOptions {
  /** [0.9, 0.999] unless given. */
  readonly betas?: readonly [number, number] | undefined;
  /** 1e-8 unless given. */
  readonly eps?: number | undefined;
  /** 0.01 unless given. */
  readonly weightDecay?: number | undefined;
  /** False unless given; PyTorch always corrects. */
  readonly biasCorrection?: boolean | undefined;
}

export class AdamW extends Optimizer {
  constructor(learningRate: LearningRate, options: AdamWOptions = {}) {
    const { betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0.01, biasCorrection = false, stateDtype } = options;
    super('AdamW', learningRate, [...betas, eps, weightDecay, biasCorrection ? 1 : 0], stateDtype);
  }
}

/** Options of Adamax. */
export interface AdamaxOptions extends OptimizerOptions {
  /** [0.9, 0.999] unless given. */
  readonly betas?: readonly [number, number] | undefined;
  /** 1e-8 unless given. */
  readonly eps?: number | undefined;
}

export class Adamax extends Optimizer {
  constructor(learningRate: LearningRate, options: AdamaxOptions = {}) {
    const { betas = [0.9, 0.999], eps = 1e-8, stateDtype } = options;
    super('Adamax', learningRate, [...betas, eps], stateDtype);
  }
}

/** Options of Lion. */
export interface LionOptions extends OptimizerOptions {
  /** [0.9, 0.99] unless given. */
  readonly betas?: readonly [number, number] | undefined;
  /** 0 unless given. */
  readonly weightDecay?: number | undefined;
}

export class Lion extends Optimizer {
  constructor(learningRate: LearningRate, options: LionOptions = {}) {
    const { betas = [0.9, 0.99], weightDecay = 0, stateDtype } = options;
    super('Lion', learningRate, [...betas, weightDecay], stateDtype);
  }
}
