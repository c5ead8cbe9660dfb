import type { Seat } from '../src/engine.js';
import { isAnotherGuest } from '../src/reform.js';
import { isAnotherVersion, isOwnFailure, type TrainingFailure } from './news.js';

/**
 * Whether joining again would change nothing: another token or version, a tab that cannot take its part, which would interrupt the others each
 * time, or a group that cannot be reached. `seat` is this tab's in the world that has failed, if it was in one.
 */
export function isFinal(failure: TrainingFailure, seat: Seat | undefined): boolean {
  const { code, rank, during } = failure;
  const unreachable = code === 'timed_out' && during === 'returning';
  // Another tab that does something else is told so by the native ranks, and stays away.
  const isOfOther = code === 'mismatch' && during === 'training' && isAnotherGuest(rank, seat);
  return unreachable || code === 'authentication' || (isAnotherVersion(failure) && !isOfOther) || isOwnFailure(failure);
}
