import { isAnotherVersion, isOwnFailure, type TrainingFailure } from '../news.js';

/** Explains a failure to a person: what happened, what to do, and whether another token or another try may help. */
export interface Explanation {
  readonly headline: string;
  readonly advice: string;
  readonly askForToken: boolean;
  readonly mayTryAgain: boolean;
}

/** `mine` is this tab's rank, or -1 if it has none yet. `offline` says that the device had no network now or shortly before. */
export function explain(failure: TrainingFailure, mine: number, offline: boolean): Explanation {
  if (failure.code === 'authentication') {
    return {
      headline: 'The token is not the one of this group',
      advice: 'Open the link again, scan the QR code again, or type the token that whoever started the training gives you.',
      askForToken: true,
      mayTryAgain: false,
    };
  }
  if (isAnotherVersion(failure)) {
    return {
      headline: 'The ranks do not fit together',
      advice: 'Reload this page, so that it is the one that the training serves now, and start again.',
      askForToken: false,
      mayTryAgain: true,
    };
  }
  if (failure.during === 'returning') {
    return {
      headline: 'The training cannot be reached any more',
      advice: 'It has ended, or the network between this device and it has. Ask whoever started it, and join again if it runs.',
      askForToken: false,
      mayTryAgain: true,
    };
  }
  return failure.during === 'training' ? explainTraining(failure, mine, failure.slept || offline) : explainJoining(failure);
}

/** Says why this tab joins a group again that goes on without it. */
export function explainReturn(failure: TrainingFailure, mine: number, offline: boolean): Pick<Explanation, 'headline' | 'advice'> {
  const advice = 'If the others go on, this tab joins them again by itself.';
  // The other one is told in the same way, and neither knows which of them the native ranks agree with.
  if (failure.code === 'mismatch') return { headline: `Rank ${failure.rank} and this tab do not fit together`, advice };
  if (failure.slept || offline || (mine >= 0 && failure.rank === mine)) {
    return { headline: 'This tab was left out while it was away', advice };
  }
  if (failure.code === 'cancelled') return { headline: 'Others are joining', advice: 'All tabs come in together, in a moment.' };
  if (failure.code === 'peer_lost' && failure.rank >= 0 && failure.during === 'training') {
    return { headline: `Rank ${failure.rank} has left`, advice };
  }
  return { headline: 'The connection broke', advice };
}

function explainJoining(failure: TrainingFailure): Explanation {
  const common = { askForToken: false, mayTryAgain: true };
  // Rank 0 has no seat for this tab, and its message says why.
  if (failure.code === 'invalid_argument') {
    return {
      headline: 'The group takes no more tabs',
      advice:
        'It has all the tabs that it waits for, or has started already. Ask whoever started the training to start it with one browser more.',
      ...common,
    };
  }
  if (failure.code === 'timed_out' && failure.during === 'waiting') {
    return {
      headline: 'Not everybody came in time',
      advice: 'Ask whoever started the training to start it again, then join again.',
      ...common,
    };
  }
  if (failure.code === 'peer_lost' || failure.code === 'timed_out') {
    return {
      headline: 'The group cannot be reached',
      advice: 'Check that this device is in the same network, and that the training still waits for browsers. Then join again.',
      ...common,
    };
  }
  return { headline: 'Joining did not work', advice: 'Reload this page; if it happens again, start the training again.', ...common };
}

function explainTraining(failure: TrainingFailure, mine: number, away: boolean): Explanation {
  const again = 'Ask whoever started the training to start it again, then join again.';
  const common = { askForToken: false, mayTryAgain: true };
  if (isOwnFailure(failure)) {
    return failure.code === 'io_error'
      ? {
          headline: 'This tab has failed',
          advice: 'The fault is not that of the others; perhaps this device has no memory left. Close other tabs, then join again.',
          ...common,
        }
      : { headline: 'This tab cannot train on', advice: 'Tell whoever started the training what is said here.', ...common };
  }
  const wasMissed = failure.rank === mine && (failure.code === 'peer_lost' || failure.code === 'timed_out');
  if (away || (mine >= 0 && wasMissed)) {
    return {
      headline: 'This tab was away for too long',
      advice: `It was asleep or without network, so the others went on without it or stopped. Keep it in front and the screen on. ${again}`,
      ...common,
    };
  }
  if (failure.code === 'peer_lost' || (failure.code === 'timed_out' && failure.rank >= 0)) {
    const who = failure.rank >= 0 ? `Rank ${failure.rank}` : 'Another rank';
    return {
      headline: `${who} was lost`,
      advice: `It was closed, or its network broke, and the training stopped for all. ${again}`,
      ...common,
    };
  }
  if (failure.code === 'timed_out') return { headline: 'The others took too long', advice: again, ...common };
  if (failure.code === 'cancelled') return { headline: 'The training was stopped', advice: again, ...common };
  return { headline: 'The training stopped', advice: again, ...common };
}

const units = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Formats a number of bytes, such as "12.3 MB", in steps of 1000. */
export function bytesText(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    ++unit;
  }
  return `${unit === 0 ? value.toFixed(0) : value.toPrecision(3)} ${units[unit]}`;
}

/** Formats a number, such as "12,300". */
export function numberText(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Returns a name such as "Chromium on Linux", from what the browser says of itself. */
export function browserName(userAgent: string): string {
  const browsers: readonly (readonly [RegExp, string])[] = [
    [/Edg(e|A|iOS)?\//, 'Edge'],
    [/(Firefox|FxiOS)\//, 'Firefox'],
    [/(Chrome|CriOS|Chromium|HeadlessChrome)\//, 'Chromium'],
    [/Safari\//, 'Safari'],
  ];
  const systems: readonly (readonly [RegExp, string])[] = [
    [/iPhone/, 'an iPhone'],
    [/iPad/, 'an iPad'],
    [/Android/, 'Android'],
    [/CrOS/, 'ChromeOS'],
    [/Windows/, 'Windows'],
    [/Mac OS X|Macintosh/, 'a Mac'],
    [/Linux/, 'Linux'],
  ];
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))?.[1] ?? 'a browser';
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1];
  return system === undefined ? browser : `${browser} on ${system}`;
}
