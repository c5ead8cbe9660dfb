import { InvalidArgument } from './errors.js';
import { Tensor } from './tensors.js';
import type { Leaf } from './trees.js';

type Reals = Float32Array | Float64Array;

/** A parameter: this side's values, the shared ones, and the outer optimizer's momentum. */
export interface Parameter {
  readonly name: string;
  readonly own: Tensor<Reals>;
  readonly shared: Tensor<Reals>;
  readonly momentum: Tensor<Reals>;
}

/** What the outer optimizer computes with. */
export interface OuterStep {
  readonly rate: number;
  readonly momentum: number;
  readonly nesterov: boolean;
}

export function parameterOf({ name, tensor }: Leaf): Parameter {
  if (!isReal(tensor))
    throw new InvalidArgument(
      `the parameter '${name}' is ${tensor.dtype}; an OuterTrainer takes f32 and f64, in which small differences are not lost`,
    );
  const { shape } = tensor;
  return {
    name,
    own: tensor,
    shared: new Tensor(tensor.data.slice(), { shape }),
    momentum: new Tensor(tensor.data.slice().fill(0), { shape }),
  };
}

function isReal(tensor: Tensor): tensor is Tensor<Reals> {
  return tensor.dtype === 'f32' || tensor.dtype === 'f64';
}

/** Rounds to what an array of the parameter's dtype holds, as each operation of native ranks does. */
function rounding(data: Reals): (value: number) => number {
  return data instanceof Float32Array ? Math.fround : (value) => value;
}

/** Parameters that are averaged together. The bits are those of native ranks (native/outer/fragment.cpp, simd/update.hpp). */
export class Fragment {
  #differences: readonly Tensor<Reals>[] = [];

  constructor(readonly parameters: readonly Parameter[]) {}

  /** Computes by how much the shared parameters differ from this side's: zeros if this side has used no samples. */
  takeDifferences(hasSamples: boolean): { readonly [name: string]: Tensor } {
    this.#differences = this.parameters.map(({ own, shared }) => {
      const data = shared.data.slice();
      if (hasSamples) for (const [i, value] of own.data.entries()) data[i] = (data[i] ?? 0) - value;
      else data.fill(0);
      return new Tensor(data, { shape: own.shape });
    });
    return Object.fromEntries(this.parameters.map(({ name }, i) => [name, this.#differences[i] as Tensor]));
  }

  scaleDifferences(factor: number): void {
    for (const { data } of this.#differences) {
      const scale = rounding(data)(factor);
      for (const [i, value] of data.entries()) data[i] = value * scale;
    }
  }

  /** Applies the differences to the shared parameters as if they were gradients. */
  applyDifferences(step: OuterStep): void {
    for (const [index, { data: gradients }] of this.#differences.entries()) {
      const { shared, momentum } = this.parameters[index] as Parameter;
      const round = rounding(gradients);
      const [rate, decay] = [round(step.rate), round(step.momentum)];
      const [values, velocities] = [shared.data, momentum.data];
      for (const [i, gradient] of gradients.entries()) {
        let update = gradient;
        if (decay > 0) {
          const velocity = round(round(decay * (velocities[i] ?? 0)) + gradient);
          velocities[i] = velocity;
          update = step.nesterov ? round(gradient + round(decay * velocity)) : velocity;
        }
        values[i] = (values[i] ?? 0) - round(rate * update);
      }
    }
  }

  /** own = mixing * own + (1 - mixing) * shared; with mixing 0 all bits of the shared ones. */
  adopt(mixing: number): void {
    for (const { own, shared } of this.parameters) {
      const [values, shares] = [own.data, shared.data];
      if (mixing === 0) {
        values.set(shares);
        continue;
      }
      const round = rounding(values);
      const [keeps, takes] = [round(mixing), round(1 - mixing)];
      for (const [i, value] of values.entries()) values[i] = round(keeps * value) + round(takes * (shares[i] ?? 0));
    }
  }
}

/** Cuts parameters into `count` fragments of about as many bytes, none of them empty, as native ranks do. */
export function cutFragments(parameters: readonly Parameter[], count: number): Fragment[] {
  const sizes = parameters.map(({ own }) => own.data.byteLength);
  const part = Math.floor(sizes.reduce((sum, size) => sum + size, 0) / count);
  const fragments: Fragment[] = [];
  let [next, bytes] = [0, 0];
  for (let place = 0; place < count; ++place) {
    const begin = next;
    // Each of those that follow gets a parameter.
    const last = parameters.length - (count - place - 1);
    for (; next < last; ++next) {
      const size = sizes[next] ?? 0;
      // A parameter goes to the fragment in which more of it lies.
      const fits = bytes + Math.floor(size / 2) < part * (place + 1);
      if (next > begin && !fits && place + 1 < count) break;
      bytes += size;
    }
    fragments.push(new Fragment(parameters.slice(begin, next)));
  }
  return fragments;
}

/**
 * How many of `interval` inner steps this side takes next if the others are not to wait for it: all if it is slower than the fastest by less
 * than a tenth, and at least one. Times of 0 are not known.
 */
export function stepsFor(interval: number, secondsPerStep: number, all: readonly number[]): number {
  const noise = 1.1;
  const fastest = Math.min(secondsPerStep, ...all.filter((seconds) => seconds > 0));
  if (!(fastest > 0) || !(secondsPerStep > fastest * noise)) return interval;
  return Math.min(Math.max(Math.round((interval * fastest) / secondsPerStep), 1), interval);
}

/** Of so many steps, those during which an average goes on: `overlap` of `interval`, in proportion. */
export function overlappedSteps(steps: number, overlap: number, interval: number): number {
  if (overlap === 0) return 0;
  return Math.min(Math.max(Math.floor((steps * overlap + Math.floor(interval / 2)) / interval), 1), steps);
}
