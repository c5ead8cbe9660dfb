import { InvalidArgument } from '../errors.js';

/** The module has addresses of 32 bits: larger numbers would lose their upper bits on the way to it. */
export const largestSize = 2 ** 32 - 1;

/** Returns a number of rows or elements as the module takes it. Throws `InvalidArgument` for a larger one. */
export function countForModule(count: number): number {
  if (count > largestSize)
    throw new InvalidArgument(`${count} rows or elements are more than the ${largestSize} that a rank of wasm can have`);
  return count;
}

/** Returns a size that only says from where on something is done, as the module takes it: nothing in it has more than `largestSize`. */
export function limitForModule(size: number): number {
  return Math.min(size, largestSize);
}
