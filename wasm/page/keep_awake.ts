/** Keeps the screen on while `wanted` returns true, if the browser allows it. Pages on plain http do not have this function. */
export function keepAwake(wanted: () => boolean): void {
  const ask = (): void => {
    if (!wanted()) return document.removeEventListener('visibilitychange', ask);
    // The browser may refuse, for example on a low battery; the page then works as before.
    if (document.visibilityState === 'visible') navigator.wakeLock?.request('screen').catch(() => undefined);
  };
  // The browser ends the lock whenever the tab goes to the background, so it is requested again when the tab is visible.
  document.addEventListener('visibilitychange', ask);
  ask();
}
