import makeModule from 'ringlet-module';
import { browserPlatform } from '../src/browser_platform.js';
import { LocalEngine } from '../src/core/local_engine.js';
import type { Progress, Seat } from '../src/engine.js';
import { type RingletError, toError, toFailure } from '../src/errors.js';
import { Group } from '../src/group.js';
import { type JoinOptions, requestOf } from '../src/join.js';
import { Entrance } from '../src/reform.js';
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
// After two disagreements tabs come one by one, so that the native ranks find the odd one.
const disagreementPause = (): number => 5000 + 25_000 * Math.random();

let lastTick = performance.now();
setInterval(() => (lastTick = performance.now()), tickMs);

scope.addEventListener('message', (event: MessageEvent<Order>) => void run(event.data));

/** Takes part until the training ends. Where the group goes on without this tab, it joins again, at any native rank's door. */
async function run(order: Order): Promise<void> {
  const visit: Visit = { during: 'looking', elastic: false, disagreements: 0, returns: false };
  const entrance = new Entrance((options) => join(options, visit), { ...order, connectTimeout, onProgress: (news) => relay(news, visit) });
  const untilItIsIn = new AbortController().signal;
  let doors: readonly string[] = [];
  for (let cause: RingletError | undefined; ; visit.returns = true) {
    let isIn = false;
    try {
      const group = await entrance.joinPersistently(untilItIsIn, cause, doors);
      isIn = true;
      const { engine } = group.inner;
      ({ doors } = await engine.worldState());
      return tell({ kind: 'finished', parameterHash: await takePart(group, engine as LocalEngine, visit) });
    } catch (error) {
      // Measured before anything else runs, because the timer has not yet ticked in a Worker that was suspended.
      const slept = performance.now() - lastTick > sleepMs;
      const failure = { ...toFailure(error), during: visit.during, slept };
      if (isDisagreement(failure, visit.seat)) ++visit.disagreements;
      if (!isIn || !visit.elastic || isFinal(failure, visit.seat, visit.disagreements)) return tell({ kind: 'failed', failure });
      tell({ kind: 'left', failure });
      visit.during = 'returning';
      cause = toError(failure);
    }
    if (visit.disagreements >= 2) await new Promise((resolve) => setTimeout(resolve, disagreementPause()));
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

function relay(news: Progress, visit: Visit): void {
  if (news.kind === 'knocking') visit.elastic = true;
  // While it returns, the page goes on showing why it was left out.
  if (visit.returns) return;
  if (news.kind === 'waiting' || news.kind === 'knocking') visit.during = 'waiting';
  if (news.kind === 'connecting' || news.kind === 'waiting' || news.kind === 'knocking') tell(news);
}

async function join(options: JoinOptions, visit: Visit): Promise<Group> {
  // Each attempt has a module of its own, since nothing of a group that has failed may be left.
  const wasm = new URL('train_text.wasm', self.location.href);
  const engine = await LocalEngine.make(browserPlatform, makeModule, wasm, false, options.onProgress ?? (() => undefined));
  try {
    const membership = await engine.join(requestOf(browserPlatform, options));
    visit.seat = engine.seat;
    return new Group(engine, membership);
  } catch (error) {
    void engine.close();
    throw error;
  }
}

/** Trains, and returns the hash of the parameters at the end. */
async function takePart(group: Group, engine: LocalEngine, visit: Visit): Promise<string> {
  visit.during = 'training';
  visit.returns = false;
  try {
    const { rank, size } = group;
    const { ring, text } = await group.placement();
    const { guests, elastic } = engine.seat;
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
