/** Keeps the screen on while `wanted`, where the browser allows it; pages on plain http are not asked. */
export function keepAwake(wanted: () => boolean): void {
  const ask = (): void => {
    if (!wanted()) return document.removeEventListener('visibilitychange', ask);
    // A refusal, as on a low battery, changes nothing else.
    if (document.visibilityState === 'visible') navigator.wakeLock?.request('screen').catch(() => undefined);
  };
  // The browser ends it whenever the tab goes to the background.
  document.addEventListener('visibilitychange', ask);
  ask();
}
