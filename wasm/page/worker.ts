import makeModule from 'ringlet-module';
import { browserPlatform } from '../src/browser_platform.js';
import { LocalEngine } from '../src/core/local_engine.js';
import type { Progress, Seat } from '../src/engine.js';
import { toFailure } from '../src/errors.js';
import { Group } from '../src/group.js';
import { requestOf } from '../src/join.js';
import type { WorkerScope } from '../src/remote/worker_channel.js';
import { isDisagreement, isFinal } from './final.js';
import type { News, Order, Phase } from './news.js';
import { Trainer } from './trainer.js';
import type { TrainerModule } from './trainer_module.js';
import { train } from './training.js';

const scope = self as unknown as WorkerScope;
const tell = (news: News): void => scope.postMessage(news, []);
const tickMs = 1000;
const sleepMs = 5000;
// This can be short, because the page was loaded from the same rank a moment ago.
const connectTimeout = 20_000;
// The time before this tab joins again, doubled after each attempt that fails.
const shortestPause = 50;
const longestPause = 2000;
// After two disagreements tabs come one by one, so that the native ranks find the odd one.
const disagreementPause = (): number => 5000 + 25_000 * Math.random();

let lastTick = performance.now();
setInterval(() => (lastTick = performance.now()), tickMs);

scope.addEventListener('message', (event: MessageEvent<Order>) => void run(event.data));

/** Takes part until the training ends. Where the group goes on without this tab, it joins again. */
async function run(order: Order): Promise<void> {
  const visit: Visit = { during: 'looking', elastic: false, disagreements: 0, returns: false };
  for (let pause = shortestPause; ; pause = Math.min(2 * pause, longestPause)) {
    try {
      tell({ kind: 'finished', parameterHash: await takePart(order, visit) });
      return;
    } catch (error) {
      // Measured before anything else runs, because the timer has not yet ticked in a Worker that was suspended.
      const slept = performance.now() - lastTick > sleepMs;
      const failure = { ...toFailure(error), during: visit.during, slept };
      if (isDisagreement(failure, visit.seat)) ++visit.disagreements;
      if (!visit.elastic || isFinal(failure, visit.seat, visit.disagreements)) return tell({ kind: 'failed', failure });
      tell({ kind: 'left', failure });
      if (visit.during === 'training') pause = visit.disagreements < 2 ? shortestPause : disagreementPause();
      visit.during = 'returning';
      visit.returns = true;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** What is known of the group, over all attempts. */
interface Visit {
  during: Phase;
  elastic: boolean;
  /** This tab's place in the last world that it was in. */
  seat?: Seat;
  /** How often it has disagreed with other tabs since the last step. */
  disagreements: number;
  /** Whether it has been left out and has not come in since. */
  returns: boolean;
}

/** Joins and trains, and returns the hash of the parameters at the end. */
async function takePart(order: Order, visit: Visit): Promise<string> {
  const relay = (progress: Progress): void => {
    if (progress.kind === 'waiting' || progress.kind === 'knocking') visit.during = 'waiting';
    if (progress.kind === 'knocking') visit.elastic = true;
    // While it returns, the page goes on showing why it was left out.
    if (visit.returns) return;
    if (progress.kind === 'connecting' || progress.kind === 'waiting' || progress.kind === 'knocking') tell(progress);
  };
  // Each attempt has a module of its own, since nothing of a group that has failed may be left.
  const engine = await LocalEngine.make(browserPlatform, makeModule, new URL('train_text.wasm', self.location.href), false, relay);
  try {
    const membership = await engine.join(requestOf(browserPlatform, { ...order, connectTimeout }));
    visit.during = 'training';
    visit.seat = engine.seat;
    visit.returns = false;
    const { rank, size } = membership;
    const group = new Group(engine, membership);
    const { ring, text } = await group.placement();
    const { guests, elastic } = visit.seat;
    tell({ kind: 'joined', rank, size, guests, elastic, order: ring, placement: text });
    const trainer = new Trainer(engine.module as TrainerModule, engine.memory, rank, size);
    await train(group, trainer, (news) => {
      if (news.kind === 'step') visit.disagreements = 0;
      tell(news);
    });
    await engine.close();
    return trainer.hash;
  } catch (error) {
    void engine.close();
    throw error;
  }
}
