// A training with few averages once more, in one place: from what each rank has done.
import { cutFragments, parameterOf } from '../../src/fragment.js';
import { flatten } from '../../src/trees.js';
import { type Deed, fragments, Model, pull } from './outer_program.js';

const [rate, momentum] = [0.7, 0.9];

/** Where a fragment's elements are among all. */
type Range = readonly [begin: number, end: number];

class Rank {
  readonly own: Float64Array[];
  readonly samples = Array<number>(fragments).fill(0);
  #next = 0;

  constructor(
    readonly deeds: readonly Deed[],
    shared: readonly Float64Array[],
  ) {
    this.own = shared.map((values) => values.slice());
  }

  /** Does what this rank has done before the average of this number; false if it took no part in that. */
  reach(average: number, shared: readonly Float64Array[]): boolean {
    const end = this.deeds.findIndex(([kind, number], at) => at >= this.#next && kind === 'average' && number === average);
    if (end < 0) return false;
    for (const deed of this.deeds.slice(this.#next, end)) {
      if (deed[0] === 'average') throw new Error(`the average ${deed[1]} after others`);
      if (deed[0] === 'step') {
        const used = pull(this.own, deed[1], deed[2]);
        this.samples.forEach((since, fragment) => (this.samples[fragment] = since + used));
      } else {
        this.own.forEach((values, i) => values.set(shared[i] ?? []));
        this.samples.fill(0);
      }
    }
    this.#next = end + 1;
    return true;
  }
}

/** The shared parameters at the end, one array after the other. Weights are the samples of the fragment whose turn it is. */
export function replay(diaries: readonly (readonly Deed[])[], averages: number): number[] {
  const model = new Model();
  const shared = model.arrays.map((values) => new Float64Array(values.length));
  const velocities = shared.map((values) => values.slice());
  const ranks = diaries.map((deeds) => new Rank(deeds, shared));
  const cut = arraysOfFragments();
  for (let average = 0; average < averages; ++average) {
    const there = ranks.filter((rank) => rank.reach(average, shared));
    const turn = average % fragments;
    const weights = there.map(({ samples }) => samples[turn] ?? 0);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const isLast = average + 1 === averages;
    for (const [fragment, [begin, end]] of cut.entries()) {
      if (!isLast && fragment !== turn) continue;
      for (let at = begin; at < end; ++at) {
        const [values, velocity] = [shared[at] as Float64Array, velocities[at] as Float64Array];
        for (let i = 0; i < values.length; ++i) {
          const value = values[i] ?? 0;
          let gradient = 0;
          there.forEach(({ own }, rank) => (gradient += ((weights[rank] ?? 0) / total) * (value - (own[at]?.[i] ?? 0))));
          const now = momentum * (velocity[i] ?? 0) + gradient;
          velocity[i] = now;
          values[i] = value - rate * (gradient + momentum * now);
        }
        for (const { own } of there) own[at]?.set(values);
      }
      for (const { samples } of there) samples.fill(0, fragment, fragment + 1);
    }
  }
  return shared.flatMap((values) => [...values]);
}

function arraysOfFragments(): Range[] {
  const { layer, narrow } = new Model();
  let begin = 0;
  return cutFragments(flatten({ layer, narrow }).map(parameterOf), fragments).map(({ parameters }) => {
    const range: Range = [begin, begin + parameters.length];
    begin = range[1];
    return range;
  });
}
