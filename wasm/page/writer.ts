import type { Trainer } from './trainer.js';

const bytesAtOnce = 8;
const passageBytes = 240;
// The share of the time that writing may take, because the other ranks wait while this rank's model writes.
const allowedShare = 0.02;

/** Lets the model write a passage now and then, a few bytes at a time, so that it costs the training next to nothing. */
export class Writer {
  readonly #trainer: Trainer;
  readonly #show: (text: string) => void;
  #began = performance.now();
  #spentMs = 0;
  #bytes = 0;

  constructor(trainer: Trainer, show: (text: string) => void) {
    this.#trainer = trainer;
    this.#show = show;
  }

  /** Called after each step. */
  continue(): void {
    const now = performance.now();
    if (this.#spentMs > allowedShare * (now - this.#began)) return;
    if (this.#bytes >= passageBytes) this.#beginAnew();
    this.#write();
    this.#spentMs += performance.now() - now;
  }

  /** Writes a whole passage with the trained model. */
  async finish(breathe: () => Promise<void>): Promise<void> {
    this.#beginAnew();
    while (this.#bytes < passageBytes) {
      this.#write();
      await breathe();
    }
  }

  #beginAnew(): void {
    this.#trainer.writeAnew();
    this.#bytes = 0;
  }

  #write(): void {
    this.#bytes += bytesAtOnce;
    this.#show(this.#trainer.write(bytesAtOnce));
  }
}
