import { failureOf, toError } from '../errors.js';

/** What the module tells of an operation that has ended: an Errc, and, of failures, the culprit's rank and a sentence. */
export interface Completion {
  readonly code: number;
  readonly rank: number;
  readonly text: string;
  /** Of operations that make something: its handle. */
  readonly value: number;
}

/** The operations that are under way, by the numbers that the module knows them by. */
export class Tickets {
  readonly #waiting = new Map<number, (completion: Completion) => void>();
  #last = 0;

  /**
   * Starts an operation: `start` is given the ticket and returns what kept the operation from starting, if anything did. `finish` runs once
   * the operation has ended, in success or failure, or at once where it did not start; the promise has what it returns.
   */
  open<T>(start: (ticket: number) => Completion | undefined, finish: (completion: Completion) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (completion: Completion): void => {
        try {
          const result = finish(completion);
          if (completion.code === 0) resolve(result);
          else reject(toError(failureOf(completion.code, completion.text, completion.rank)));
        } catch (error) {
          reject(error);
        }
      };
      const ticket = this.#next();
      this.#waiting.set(ticket, end);
      const refused = start(ticket);
      if (refused !== undefined) this.complete(ticket, refused);
    });
  }

  /** Unknown tickets are passed over. */
  complete(ticket: number, completion: Completion): void {
    const end = this.#waiting.get(ticket);
    this.#waiting.delete(ticket);
    end?.(completion);
  }

  /** Ends all that wait. */
  completeAll(completion: Completion): void {
    for (const ticket of [...this.#waiting.keys()]) this.complete(ticket, completion);
  }

  #next(): number {
    do this.#last = (this.#last % 0x7fffffff) + 1;
    while (this.#waiting.has(this.#last));
    return this.#last;
  }
}
