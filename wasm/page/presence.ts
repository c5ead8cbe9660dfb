const offlineMemoryMs = 60_000;
const worthMentioningMs = 3_000;
const inBackground = 'This tab is in the background. Browsers slow such tabs down, or stop them: bring it to the front.';

/** What the page knows of this device's network. */
export interface Presence {
  /** Whether the device has no network, or had none within the last minute. */
  wasOffline(): boolean;
}

/** Calls `note` with a text when the tab was in the background or the device has no network, and with '' when all is well again. */
export function watchPresence(note: (text: string) => void): Presence {
  // A page that is opened in the background gets no event until it is shown.
  let hiddenSince = Date.now();
  let offlineUntil = -Infinity;
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden') {
      hiddenSince = Date.now();
      return note(inBackground);
    }
    const away = Date.now() - hiddenSince;
    note(
      away < worthMentioningMs
        ? ''
        : `This tab was in the background for ${Math.round(away / 1000)} seconds. Keep it in front: browsers slow down what is behind.`,
    );
  });
  if (document.visibilityState === 'hidden') note(inBackground);
  addEventListener('offline', () => {
    offlineUntil = Infinity;
    note('This device has no network now. If it does not come back within seconds, this tab is lost to the others.');
  });
  addEventListener('online', () => {
    offlineUntil = Date.now();
    note('');
  });
  return { wasOffline: () => Date.now() - offlineUntil < offlineMemoryMs };
}
