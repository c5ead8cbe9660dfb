import type { RingletModule } from '../src/core/module.js';

/** The exports of the module `train_text`; examples/train_text/tab_trainer.hpp declares and explains them. */
export interface TrainerModule extends RingletModule {
  _train_text_create(rank: number, ranks: number): number;
  _train_text_destroy(trainer: number): void;
  _train_text_next(trainer: number): number;
  _train_text_compute(trainer: number, samples: number): number;
  _train_text_exchange(trainer: number): number;
  _train_text_average(trainer: number): number;
  _train_text_outer(trainer: number): number;
  _train_text_begin_step(trainer: number, step: number, rank: number, ranks: number): void;
  _train_text_done(trainer: number): void;
  _train_text_problem(trainer: number): number;
  _train_text_numbers(trainer: number): number;
  _train_text_hash(trainer: number): number;
  _train_text_write(trainer: number, bytes: number): number;
  _train_text_write_anew(trainer: number): void;
  _train_text_written(trainer: number): number;
}

/** The values of TrainTextNext. */
export const next = { end: 0, compute: 1, broadcast: 2, allSum: 3, allGather: 4, average: 5, failed: 6, agree: 7, outer: 8 } as const;

/** The names of TrainTextNumber's values, in its order. */
export const numberNames = [
  'ranks',
  'step',
  'steps',
  'loss',
  'validations',
  'validationLoss',
  'batch',
  'share',
  'context',
  'parameters',
  'textBytes',
  'tokens',
  'seconds',
  'waitingShare',
  'secondsPerSample',
  'checkedStep',
  'averageEvery',
] as const;

export type TrainerNumbers = Readonly<Record<(typeof numberNames)[number], number>>;
