let isWanted = false;
let lock: Promise<WakeLockSentinel | undefined> | undefined;

/** Keeps the screen on, if the browser allows it, or no longer. Pages on plain http cannot. */
export function keepAwake(wanted: boolean): void {
  if (wanted === isWanted) return;
  isWanted = wanted;
  if (!wanted) {
    document.removeEventListener('visibilitychange', ask);
    return release();
  }
  // The browser ends the lock whenever the tab goes to the background, so it is requested again when the tab is visible.
  document.addEventListener('visibilitychange', ask);
  ask();
}

function ask(): void {
  if (document.visibilityState !== 'visible') return;
  // Otherwise the one before would stay where the tab comes back before the browser has answered.
  release();
  // The browser may refuse, for example on a low battery; the page then works as before.
  lock = navigator.wakeLock?.request('screen').catch(() => undefined);
}

function release(): void {
  void lock?.then((held) => held?.release()).catch(() => undefined);
  lock = undefined;
}
