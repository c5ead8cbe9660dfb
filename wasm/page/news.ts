import type { ErrorCode } from '../src/errors.js';

/** The messages from the page to its Worker. */
export type Order = {
  readonly kind: 'join';
  /** The page's own address, without the fragment. */
  readonly url: string;
  readonly token: string;
  /** The name of this browser, for people: "Chromium on Linux". */
  readonly name: string;
};

/** The messages from the Worker to the page. */
export type News =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'knocking' }
  | { readonly kind: 'waiting'; readonly here: number; readonly size: number }
  | {
      readonly kind: 'joined';
      readonly rank: number;
      readonly size: number;
      readonly guests: number;
      /** Whether the others go on when a rank is lost. */
      readonly elastic: boolean;
      readonly order: readonly number[];
      readonly placement: string;
    }
  | {
      readonly kind: 'prepared';
      /** Steps done before this tab takes part; it is told again when the others have given their state to this tab. */
      readonly step: number;
      readonly steps: number;
      readonly batch: number;
      readonly parameters: number;
      /** Steps between two averages of the parameters; 0 where gradients are averaged in each step. */
      readonly averageEvery: number;
    }
  | { readonly kind: 'step'; readonly step: number; readonly loss: number; readonly numbers: Numbers }
  | { readonly kind: 'validation'; readonly step: number; readonly loss: number }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'finished'; readonly parameterHash: string }
  /** The others go on without this tab, which joins them again. */
  | { readonly kind: 'left'; readonly failure: TrainingFailure }
  | { readonly kind: 'failed'; readonly failure: TrainingFailure };

/** Measurements over the last steps. */
export interface Numbers {
  /** The rate of all ranks together. */
  readonly tokensPerSecond: number;
  /** This tab's samples of a step, and how many a step has. */
  readonly samples: number;
  readonly batch: number;
  /** The share of the time that was spent on communication, from 0 to 1. */
  readonly communicationShare: number;
  /** Bytes over this tab's links since it joined. */
  readonly sent: number;
  readonly received: number;
}

/** What the Worker is doing: looking for rank 0, waiting there for the others, training with them, or looking for them again. */
export type Phase = 'looking' | 'waiting' | 'training' | 'returning';

export interface TrainingFailure {
  readonly code: ErrorCode;
  readonly message: string;
  /** The rank that caused the failure; -1 if none is known. */
  readonly rank: number;
  /** The phase in which it failed. */
  readonly during: Phase;
  /** Whether the Worker had been suspended for seconds just before. */
  readonly slept: boolean;
}

/** Whether this tab does not fit together with the others; until a group lets it in, a breach of the protocol is another version of it. */
export function isAnotherVersion({ code, during }: TrainingFailure): boolean {
  return code === 'mismatch' || (code === 'protocol_error' && (during === 'looking' || during === 'returning'));
}

/** Whether the tab's own part of the training has failed: its trainer cannot go on, or the tab has no memory left. */
export function isOwnFailure({ code, rank, during }: TrainingFailure): boolean {
  return during === 'training' && rank < 0 && (code === 'invalid_argument' || code === 'io_error');
}
