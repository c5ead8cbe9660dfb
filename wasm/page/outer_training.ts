import { RingletError } from '../src/errors.js';
import type { Group } from '../src/group.js';
import { OuterLoop } from '../src/outer.js';
import type { Outer, Trainer } from './trainer.js';
import { next } from './trainer_module.js';

/** An OuterTrainer in a group that has been joined. When that ends, another trainer begins in the next one. */
class TabOuterTrainer extends OuterLoop {
  constructor(group: Group, { parameters, options }: Outer) {
    super(() => Promise.resolve(group), { url: '' }, parameters, { ...options, elastic: { ...options.elastic, rejoin: false } });
  }
}

/**
 * Trains with few averages until all inner steps are done. `compute` lets the trainer compute a slice, and `report` runs when a step of this
 * side has begun and when it is done.
 */
export async function trainWithFewAverages(
  group: Group,
  trainer: Trainer,
  compute: () => Promise<void>,
  report: () => void,
): Promise<void> {
  const outer = new TabOuterTrainer(group, trainer.outer());
  await outer.run(trainer.numbers.steps, async (step) => {
    trainer.beginStep(step);
    report();
    while (trainer.next === next.compute) await compute();
    if (trainer.next === next.failed) throw new RingletError('invalid_argument', trainer.problem);
    report();
    return trainer.numbers.share;
  });
}
