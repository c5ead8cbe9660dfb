import { PeerLost, RingletError } from '../src/errors.js';
import type { Group } from '../src/group.js';
import type { News, Numbers } from './news.js';
import { trainWithFewAverages } from './outer_training.js';
import type { Trainer } from './trainer.js';
import { next, type TrainerNumbers } from './trainer_module.js';
import { Writer } from './writer.js';

// The length of a slice of computing, during which heartbeats and messages have to wait.
const sliceSeconds = 0.05;
// The time over which tokens per second are averaged.
const rateWindowMs = 3000;

/** Takes part in a run until its end: computes in slices, carries out the collectives that the trainer asks for, and reports progress. */
export async function train(group: Group, trainer: Trainer, tell: (news: News) => void): Promise<void> {
  const breath = new Breath();
  try {
    await runCourse(group, trainer, tell, () => breath.take());
  } finally {
    breath.end();
  }
}

async function runCourse(group: Group, trainer: Trainer, tell: (news: News) => void, breathe: () => Promise<void>): Promise<void> {
  const reporter = new Reporter(group, trainer, tell);
  const writer = new Writer(trainer, (text) => tell({ kind: 'text', text }));
  const report = (): void => {
    if (reporter.report()) writer.continue();
  };
  const compute = async (): Promise<void> => {
    trainer.compute(samplesPerSlice(trainer.numbers));
    await breathe();
  };
  for (;;) {
    switch (trainer.next) {
      case next.compute:
        await compute();
        break;
      case next.broadcast: {
        const { output, stream } = trainer.exchange();
        await group.broadcast(output, 0, { into: output, stream });
        trainer.done();
        break;
      }
      case next.allSum: {
        const { input, output, stream } = trainer.exchange();
        await group.allSum(input, { into: output, stream });
        trainer.done();
        break;
      }
      case next.allGather: {
        const { input, output, stream } = trainer.exchange();
        await group.allGather(input, { into: output, stream });
        trainer.done();
        break;
      }
      case next.average: {
        const { gradients, ...options } = trainer.average();
        await group.averageGradients(gradients, options);
        trainer.done();
        break;
      }
      case next.agree:
        // The others go on without this rank, which does not know whether they have committed the step.
        if (!(await group.agree(true))) throw new PeerLost('a rank was lost while the ranks voted on a step');
        trainer.done();
        break;
      case next.outer:
        await trainWithFewAverages(group, trainer, compute, report);
        trainer.done();
        break;
      case next.failed:
        throw new RingletError('invalid_argument', trainer.problem);
      default:
        await writer.finish(breathe);
        return;
    }
    report();
  }
}

function samplesPerSlice({ secondsPerSample }: TrainerNumbers): number {
  return secondsPerSample > 0 ? Math.max(1, Math.floor(sliceSeconds / secondsPerSample)) : 1;
}

/** Lets the other tasks of this thread run, without the delay that timers have. */
class Breath {
  readonly #channel = new MessageChannel();
  #resume = (): void => undefined;

  constructor() {
    this.#channel.port1.onmessage = () => this.#resume();
  }

  take(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve;
      this.#channel.port2.postMessage(undefined);
    });
  }

  /** Closes the channel, since an open one keeps Node running. take() must not be called afterwards. */
  end(): void {
    this.#channel.port1.close();
  }
}

/** Reports what has changed since its last report. */
class Reporter {
  readonly #group: Group;
  readonly #trainer: Trainer;
  readonly #tell: (news: News) => void;
  #prepared = false;
  #step = 0;
  #validations = 0;
  #marks: { readonly at: number; readonly step: number }[] = [];

  constructor(group: Group, trainer: Trainer, tell: (news: News) => void) {
    this.#group = group;
    this.#trainer = trainer;
    this.#tell = tell;
  }

  /** Returns whether this rank has taken part in a step since the last call. */
  report(): boolean {
    const numbers = this.#trainer.numbers;
    if (numbers.parameters > 0 && this.#isBeforeFirstStep(numbers)) this.#tellPrepared(numbers);
    if (numbers.validations > this.#validations) {
      this.#validations = numbers.validations;
      this.#tell({ kind: 'validation', step: numbers.step, loss: numbers.validationLoss });
    }
    if (!this.#prepared || numbers.step === this.#step) return false;
    this.#step = numbers.step;
    this.#tell({ kind: 'step', step: numbers.step, loss: numbers.loss, numbers: this.#numbers(numbers) });
    return true;
  }

  /** As long as no loss is known, steps are those of the state that the others have given to this rank. */
  #isBeforeFirstStep({ step, loss }: TrainerNumbers): boolean {
    return !this.#prepared || (Number.isNaN(loss) && step !== this.#step);
  }

  #tellPrepared({ step, steps, batch, parameters, averageEvery }: TrainerNumbers): void {
    this.#prepared = true;
    this.#step = step;
    this.#marks = [{ at: performance.now(), step }];
    this.#tell({ kind: 'prepared', step, steps, batch, parameters, averageEvery });
  }

  #numbers({ step, batch, share, context, waitingShare }: TrainerNumbers): Numbers {
    const now = performance.now();
    this.#marks.push({ at: now, step });
    while (this.#marks.length > 2 && now - (this.#marks[1]?.at ?? now) > rateWindowMs) this.#marks.shift();
    const first = this.#marks[0] ?? { at: now, step };
    const seconds = (now - first.at) / 1000;
    const tokensPerSecond = seconds > 0 ? ((step - first.step) * batch * context) / seconds : 0;
    return { tokensPerSecond, samples: share, batch, communicationShare: waitingShare, ...this.#group.traffic };
  }
}
