import { InvalidArgument } from './errors.js';

/** Returns the rows of each rank's part: even, and one more for the first ranks if they do not divide evenly. */
export function evenRows(rows: number, ranks: number): number[] {
  const least = Math.floor(rows / ranks);
  return Array.from({ length: ranks }, (_, rank) => least + (rank < rows % ranks ? 1 : 0));
}

/** Returns the shape of `rows` rows that look like those of `shape`. */
export function partShape(shape: readonly number[], rows: number): readonly number[] {
  if (shape.length === 0) throw new InvalidArgument('a scalar has no axis 0 that could be divided; give it the shape [1]');
  return [rows, ...shape.slice(1)];
}

/** Returns the shape of every rank's part, concatenated along axis 0; a scalar becomes one row. */
export function allGatherShape(shape: readonly number[], ranks: number, counts: readonly number[] | undefined): readonly number[] {
  const [rows = 1, ...rest] = shape;
  return [counts === undefined ? rows * ranks : counts.reduce((sum, count) => sum + count, 0), ...rest];
}

/** Throws `InvalidArgument` unless there is one whole number, 0 or more, per rank. */
export function checkedCounts(name: string, counts: readonly number[] | undefined, ranks: number): readonly number[] | undefined {
  if (counts === undefined) return undefined;
  if (counts.length !== ranks)
    throw new InvalidArgument(`${name} has ${counts.length} numbers, but the group has ${ranks} ranks; give one for each`);
  for (const count of counts) {
    if (!Number.isSafeInteger(count) || count < 0)
      throw new InvalidArgument(`${name} has ${count}; give the rows of each rank, whole numbers from 0`);
  }
  return [...counts];
}

/** Throws `InvalidArgument` unless the rank is a whole number; the core checks whether there is such a rank. */
export function checkedRank(rank: number): number {
  if (!Number.isInteger(rank) || Math.abs(rank) > 0x7fffffff) throw new InvalidArgument(`${rank} is no rank; give a whole number`);
  return rank;
}
