// What tests/wasm/native_trainer.cpp does, for browsers and Node.
import type { ElasticTrainer, JoinOptions, MembershipChange } from '../../src/node.js';

export const batch = 64;

/** A step that was committed: its number, how many ranks took it in which epoch, and a hash of the state after it. */
export type Line = readonly [step: number, ranks: number, epoch: number, hash: string];

/** What a rank has to tell. */
export interface Diary {
  readonly journal: Line[];
  readonly changes: { readonly step: number; readonly cause: string }[];
  /** The steps at which the state came from others. */
  readonly states: number[];
  /** Of what came and was not the state of its step. */
  readonly mistakes: string[];
  end: string;
}

export class Model {
  readonly exact = new Float32Array(5000);
  readonly mixed = new Float32Array(3);
  readonly steps = new Int32Array(1);

  hash(): string {
    let hash = 0x811c9dc5;
    for (const { buffer } of [this.exact, this.mixed, this.steps])
      for (const byte of new Uint8Array(buffer)) hash = Math.imul(hash ^ byte, 0x01000193);
    return (hash >>> 0).toString(16).padStart(8, '0');
  }
}

export function newDiary(): Diary {
  return { journal: [], changes: [], states: [], mistakes: [], end: '' };
}

/** Trains to the end, and writes it down. `begun` gets the trainer first. */
export async function train(
  Trainer: typeof ElasticTrainer,
  where: JoinOptions,
  steps: number,
  pause: number,
  diary: Diary,
  begun: (trainer: ElasticTrainer, model: Model) => void = () => undefined,
): Promise<void> {
  const model = new Model();
  const gradients = { exact: new Float32Array(5000), mixed: new Float32Array(3) };
  const trainer = new Trainer(
    where,
    { model: { exact: model.exact, mixed: model.mixed, steps: model.steps } },
    {
      onChange: ({ step, cause }: MembershipChange) => diary.changes.push({ step, cause: cause.message }),
      onState: (step) => {
        diary.states.push(step);
        const { values } = trainer;
        if (model.steps[0] !== step || values.get('last') !== BigInt(step) - 1n || values.get('rate') !== 0.1)
          diary.mistakes.push(`not the state of step ${step}: ${model.steps[0]}, ${[...values]}`);
      },
    },
  );
  begun(trainer, model);
  await trainer.run({ steps, batch }, async (step) => {
    gradients.exact.forEach((_, i) => (gradients.exact[i] = (step.number * 7 + i) % 13));
    gradients.mixed.forEach((_, i) => {
      let sum = 0;
      for (let sample = step.first; sample < step.first + step.count; ++sample) sum += (step.number * 31 + sample * 17 + i) % 101;
      gradients.mixed[i] = sum / step.count;
    });
    await new Promise((resolve) => setTimeout(resolve, pause));
    await step.average(gradients);
    await step.commit(() => {
      model.exact.forEach((value, i) => (model.exact[i] = value + (gradients.exact[i] ?? 0)));
      model.mixed.forEach((value, i) => (model.mixed[i] = value + 0.125 * (gradients.mixed[i] ?? 0)));
      model.steps[0] = (model.steps[0] ?? 0) + 1;
      trainer.values.set('last', BigInt(step.number));
      diary.journal.push([step.number, step.world.size, step.world.epoch, model.hash()]);
    });
  });
}
