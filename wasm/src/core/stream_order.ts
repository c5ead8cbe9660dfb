const nothing = (): void => undefined;

/**
 * Keeps the order of a stream whose operations include procedures (several collectives with computing between them). An operation that
 * follows a procedure starts when the procedure has ended, as on ranks that wait. Other operations start at once.
 */
export class StreamOrder {
  // For each stream with a procedure under way, the promise that the next operation waits for.
  readonly #gates = new Map<string, Promise<void>>();

  start<T>(group: number, stream: number, isProcedure: boolean, begin: () => Promise<T>): Promise<T> {
    const key = `${group}/${stream}`;
    const gate = this.#gates.get(key);
    const running = gate === undefined ? begin() : gate.then(begin);
    if (gate === undefined && !isProcedure) return running;
    // This comes after `begin`, whose callback was registered first.
    const passed = (isProcedure || gate === undefined ? running : gate).then(nothing, nothing);
    this.#gates.set(key, passed);
    void passed.then(() => {
      if (this.#gates.get(key) === passed) this.#gates.delete(key);
    });
    return running;
  }
}
