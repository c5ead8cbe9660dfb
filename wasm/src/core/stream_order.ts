const nothing = (): void => undefined;

/**
 * Keeps the order of a stream where procedures (several collectives with computing between them) are among its operations: what comes behind
 * one is started when it has ended, as on ranks that wait. What comes behind none is started at once.
 */
export class StreamOrder {
  // Of streams with a procedure under way: what the next operation waits for.
  readonly #gates = new Map<string, Promise<void>>();

  start<T>(group: number, stream: number, isProcedure: boolean, begin: () => Promise<T>): Promise<T> {
    const key = `${group}/${stream}`;
    const gate = this.#gates.get(key);
    const running = gate === undefined ? begin() : gate.then(begin);
    if (gate === undefined && !isProcedure) return running;
    // Behind `begin`, which has been asked for first.
    const passed = (isProcedure || gate === undefined ? running : gate).then(nothing, nothing);
    this.#gates.set(key, passed);
    void passed.then(() => {
      if (this.#gates.get(key) === passed) this.#gates.delete(key);
    });
    return running;
  }
}
