import type { Seat } from '../src/engine.js';
import { isAnotherGuest, mostDisagreements } from '../src/reform.js';
import { isAnotherVersion, isOwnFailure, type TrainingFailure } from './news.js';

/** Whether another tab does something else than this one. `seat` is this tab's in the world that has failed, if it was in one. */
export function isDisagreement({ code, rank, during }: TrainingFailure, seat: Seat | undefined): boolean {
  return code === 'mismatch' && during === 'training' && isAnotherGuest(rank, seat);
}

/**
 * Whether joining again would change nothing: this tab does something else than the others, or cannot take its part, which would interrupt
 * them each time. `disagreements` are those with other tabs, this one among them, since the last step.
 */
export function isFinal(failure: TrainingFailure, seat: Seat | undefined, disagreements: number): boolean {
  const isOfOther = isDisagreement(failure, seat) && disagreements < mostDisagreements;
  return (isAnotherVersion(failure) && !isOfOther) || isOwnFailure(failure);
}
