import { failureOf, toError } from '../errors.js';

/** What the module reports about an operation that has ended: an Errc and, for failures, the rank that caused it and a sentence. */
export interface Completion {
  readonly code: number;
  readonly rank: number;
  readonly text: string;
  /** The handle of the object that the operation has made, if any. */
  readonly value: number;
}

const notStarted: Completion = { code: 1, rank: -1, text: 'the operation was not started', value: 0 };

/** The operations under way, by the ticket numbers that the module knows them by. */
export class Tickets {
  readonly #waiting = new Map<number, (completion: Completion) => void>();
  #last = 0;

  /**
   * Starts an operation: `start` gets the ticket and returns a completion if the operation could not start. `finish` runs when the
   * operation has ended, in success or failure, or at once if it did not start, also because `start` has thrown; its result resolves the
   * promise.
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
      try {
        const refused = start(ticket);
        if (refused !== undefined) this.complete(ticket, refused);
      } catch (error) {
        reject(error);
        this.complete(ticket, notStarted);
      }
    });
  }

  /** Ignores unknown tickets. */
  complete(ticket: number, completion: Completion): void {
    const end = this.#waiting.get(ticket);
    this.#waiting.delete(ticket);
    end?.(completion);
  }

  /** Completes all operations that are under way. */
  completeAll(completion: Completion): void {
    for (const ticket of [...this.#waiting.keys()]) this.complete(ticket, completion);
  }

  #next(): number {
    do this.#last = (this.#last % 0x7fffffff) + 1;
    while (this.#waiting.has(this.#last));
    return this.#last;
  }
}
