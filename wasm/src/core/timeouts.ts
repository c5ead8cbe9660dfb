/** Milliseconds, 25 days: timers and the module's calls take an int32. */
export const longestTimeout = 0x7fffffff;

/** Returns a timeout as the module takes it: whole milliseconds, `longestTimeout` at most, or 0 for the group's own. */
export function timeoutForModule(timeout: number | undefined): number {
  // What does not fit into an int32 would arrive as another number, or as 0.
  return Math.min(Math.ceil(timeout ?? 0), longestTimeout);
}
