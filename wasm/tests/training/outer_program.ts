// What tests/wasm/native_trainer.cpp does with --outer, for browsers and Node.
import type { InnerStep, JoinOptions, OuterTrainer, OuterTrainerOptions } from '../../src/node.js';

/** Inner steps between two averages. */
export const interval = 4;
export const fragments = 2;

export class Model {
  readonly layer = { wide: new Float32Array(5000), exact: new Float64Array(3) };
  readonly narrow = new Float32Array(70);

  get arrays(): readonly [Float32Array, Float64Array, Float32Array] {
    return [this.layer.wide, this.layer.exact, this.narrow];
  }
}

/** Pulls parameters towards values of this rank's own, and returns how many samples that took. */
export function pull(arrays: readonly (Float32Array | Float64Array)[], number: number, rank: number): number {
  for (const values of arrays)
    values.forEach((value, i) => (values[i] = value + 0.05 * (((number * 7919 + rank * 104_729 + i * 31) % 1009) / 1009 - value)));
  return ((number + rank) % 3) + 1;
}

export function hashOf(arrays: readonly ArrayBufferView[]): string {
  let hash = 0x811c9dc5;
  for (const { buffer, byteOffset, byteLength } of arrays)
    for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

/**
 * What a rank has done: an inner step of this number, as this rank; an average of this number, counted from 0, in which it took part; that
 * it got the state of the others, who have done so many averages.
 */
export type Deed =
  readonly ['step', number: number, rank: number] | readonly ['average', number: number] | readonly ['state', averages: number];

export interface OuterDiary {
  readonly deeds: Deed[];
  /** Hashes of the shared parameters after so many averages. */
  readonly hashes: [averages: number, hash: string][];
  /** The parameters at the end, one array after the other. */
  readonly values: number[];
  end: string;
}

export class OuterProgram {
  readonly diary: OuterDiary = { deeds: [], hashes: [], values: [], end: '' };
  readonly model = new Model();
  readonly trainer: OuterTrainer;
  #holds: (() => void) | undefined;

  constructor(Trainer: typeof OuterTrainer, where: JoinOptions, wire: OuterTrainerOptions['wire'], overlap: number) {
    const { layer, narrow } = this.model;
    const { deeds } = this.diary;
    this.trainer = new Trainer(
      where,
      { layer, narrow },
      {
        innerSteps: fragments * interval,
        fragments,
        overlap,
        bySpeed: true,
        wire,
        // It is asked for when an average is committed.
        learningRate: (average) => {
          deeds.push(['average', average]);
          return 0.7;
        },
        elastic: { onState: (averages) => deeds.push(['state', averages]) },
      },
    );
  }

  async run(averages: number): Promise<void> {
    const { diary, model, trainer } = this;
    await trainer.run(averages * interval, async ({ number, rank }: InnerStep) => {
      if (this.#holds !== undefined) {
        this.#holds();
        await new Promise(() => undefined);
      }
      this.#noteHash();
      const samples = pull(model.arrays, number, rank);
      diary.deeds.push(['step', number, rank]);
      return samples;
    });
    this.#noteHash();
    for (const values of model.arrays) diary.values.push(...values);
  }

  /** Takes no inner step any more. Resolves where it would have taken one. */
  hold(): Promise<void> {
    return new Promise((resolve) => (this.#holds = resolve));
  }

  #noteHash(): void {
    const { averages, sharedParameters } = this.trainer;
    if (averages === this.diary.hashes.at(-1)?.[0]) return;
    this.diary.hashes.push([averages, hashOf(Object.values(sharedParameters).map(({ data }) => data))]);
  }
}
