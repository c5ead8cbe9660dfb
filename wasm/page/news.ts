import type { ErrorCode } from '../src/errors.js';

/** What the page tells its Worker. */
export type Order = {
  readonly kind: 'join';
  /** The page's own address, without the fragment. */
  readonly url: string;
  readonly token: string;
  /** Of this browser, for people: "Chromium on Linux". */
  readonly name: string;
};

/** What the Worker tells the page. */
export type News =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'waiting'; readonly here: number; readonly size: number }
  | {
      readonly kind: 'joined';
      readonly rank: number;
      readonly size: number;
      readonly guests: number;
      readonly order: readonly number[];
      readonly placement: string;
    }
  | { readonly kind: 'prepared'; readonly step: number; readonly steps: number; readonly batch: number; readonly parameters: number }
  | { readonly kind: 'step'; readonly step: number; readonly loss: number; readonly numbers: Numbers }
  | { readonly kind: 'validation'; readonly step: number; readonly loss: number }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'finished'; readonly parameterHash: string }
  | { readonly kind: 'failed'; readonly failure: TrainingFailure };

/** Of the last steps. */
export interface Numbers {
  /** Of all ranks together. */
  readonly tokensPerSecond: number;
  /** This tab's samples of a step, and how many a step has. */
  readonly samples: number;
  readonly batch: number;
  /** Of the time, from 0 to 1. */
  readonly communicationShare: number;
  /** Bytes over this tab's links since it joined. */
  readonly sent: number;
  readonly received: number;
}

/** Looking for rank 0, waiting there for the others, training with them. */
export type Phase = 'looking' | 'waiting' | 'training';

export interface TrainingFailure {
  readonly code: ErrorCode;
  readonly message: string;
  /** The culprit's; -1 where none is known. */
  readonly rank: number;
  /** What was going on. */
  readonly during: Phase;
  /** Whether the Worker had stood still for seconds just before. */
  readonly slept: boolean;
}
