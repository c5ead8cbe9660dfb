import type { TrainingFailure } from './news.js';

/** Reads the event of a Worker that has failed outside of what it tells itself. */
export function failureOfWorker({ message }: Partial<ErrorEvent>, isTraining: boolean): TrainingFailure {
  const failure = { rank: -1, slept: false };
  if (isTraining) return { ...failure, code: 'io_error', message: message || 'the browser does not say why', during: 'training' };
  // There is no message where the script cannot be loaded, which the browser does anew for each Worker.
  if (!message) return { ...failure, code: 'peer_lost', message: 'what served this page does not answer any more', during: 'looking' };
  return { ...failure, code: 'io_error', message, during: 'looking' };
}
